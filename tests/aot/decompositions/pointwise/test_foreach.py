"""Operators on lists of tensors, against eager: each without the compiler, and some with it."""

import pytest
import torch

from pelton import aot
from pelton.aot.compat.operators import foreach_operators, schema_of
from pelton.aot.decompositions.pointwise.foreach import FAMILY
from tests.programs import assert_equals_eager, compiled

WEIGHTS = (0.5, 2, 1)
BY_TYPE = {"List[number]": list(WEIGHTS), "number": 2.5, "Tensor": torch.tensor(2.5)}
SOME = {"List[Tensor]": [torch.rand(2, 3), torch.rand(1), torch.rand(0)]}
OTHERS = [torch.rand(2, 3) + 1, torch.rand(1) + 1, torch.rand(0)]
SPECIAL = {
    "mm": ([torch.rand(2, 3)], [torch.rand(3, 2)]),
    "max": (SOME["List[Tensor]"][:2],),
    "lgamma": (SOME["List[Tensor]"],),
}


def arguments(name, operator):
    if name in SPECIAL:
        return SPECIAL[name]
    found = []
    for argument in schema_of(operator).arguments:
        if argument.has_default_value():
            continue
        if argument.name == "scalars" and str(argument.type) == "Tensor":
            found.append(torch.tensor(WEIGHTS))
        elif str(argument.type) == "List[Tensor]":
            found.append(OTHERS if found else SOME["List[Tensor]"])
        else:
            found.append(BY_TYPE[str(argument.type)])
    return found


@pytest.mark.parametrize(
    ("name", "operator"), [pytest.param(*each, id=str(each[1])) for each in foreach_operators()]
)
def test_each_is_what_eager_computes(name, operator):
    (function,) = [entry.function for entry in FAMILY.entries if entry.operator is operator]
    args = arguments(name, operator)
    torch.testing.assert_close(function(*args), operator(*args), equal_nan=True)


def test_a_step_of_an_optimizer(tmp_path):
    def step(x, gradient):
        values, means = [x, x[:, :1].clone()], [x * 0.1, x[:, 1:2] * 0.1]
        gradients = torch._foreach_add([gradient, gradient[:, :1]], values, alpha=0.1)
        torch._foreach_lerp_(means, gradients, 0.3)
        squares = torch._foreach_mul(gradients, gradients)
        torch._foreach_addcdiv_(values, means, torch._foreach_sqrt(squares), value=-0.1)
        return values, means, torch._foreach_norm(gradients)

    n = aot.NamedDimension("n", 1, 4, 9)
    spec = aot.InputInfo((n, 3), torch.float32)
    exe = compiled(tmp_path, step, (spec, spec))
    calls = [(torch.rand(n, 3), torch.rand(n, 3) + 1) for n in (1, 3, 9)]
    assert_equals_eager(exe, lambda x, g: step(x.clone(), g), *calls)
