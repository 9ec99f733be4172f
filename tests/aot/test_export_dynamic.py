"""Dynamic sizes: every way to ask for them, numbers at several sizes, checks and refusals."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

from pelton import aot, runtime

from ..programs import assert_equals_eager, compiled

BATCH = Dim("batch", min=1, max=8)


def rows(*counts: int, width: int = 3) -> list[tuple[torch.Tensor]]:
    return [(torch.randn(count, width),) for count in counts]


@pytest.mark.parametrize(
    "size",
    [BATCH, "batch", Dim.DYNAMIC, Dim.AUTO, Dim.DYNAMIC(min=1, max=8),
     aot.NamedDimension("batch", 1, 4, 8)],
    ids=["Dim", "name", "DYNAMIC", "AUTO", "DYNAMIC with bounds", "NamedDimension"],
)  # fmt: skip
@pytest.mark.parametrize("example", [1, 4, 8])
def test_each_way_to_ask_for_a_dynamic_size_gives_one(size: object, example: int) -> None:
    out = aot.export(nn.Linear(3, 2), torch.randn(example, 3), dynamic_shapes=({0: size},))
    spec = out.signatures["main"].inputs[0]
    assert isinstance(spec.shape[0], str)
    assert "?" in str(out.mlir_module)


def test_a_batch_example_of_one_serves_all_batches(tmp_path: Path) -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.ReLU(), nn.Linear(5, 2)).eval()
    exe = compiled(tmp_path, model, rows(1)[0], dynamic_shapes=({0: BATCH},))
    assert_equals_eager(exe, model, *rows(1, 2, 5, 8))


def test_a_size_of_zero_is_a_size(tmp_path: Path) -> None:
    exe = compiled(
        tmp_path, lambda x: (x * 2, x.sum(), x.sum(0)), rows(4)[0], dynamic_shapes=({0: "n"},)
    )
    assert_equals_eager(exe, lambda x: (x * 2, x.sum(), x.sum(0)), *rows(0, 1, 6))


def test_slices_of_a_tensor_shorter_than_they_are(tmp_path: Path) -> None:
    def slices(x: torch.Tensor) -> dict[str, torch.Tensor]:
        return {
            "bounded": x[:, 1:3], "last": x[:, -3:-1], "step": x[:, 1:4:2], "reversed": x[:, 3:1],
            "shift": x[:, 1:] - x[:, :-1], "across": x[:, -4:2], "own": x[:, x.shape[0] :],
            "split": torch.cat(x.tensor_split([1, 3], 1), 1),
        }  # fmt: skip

    shapes = ({0: "rows", 1: "columns"},)
    exe = compiled(tmp_path, slices, rows(6, width=4)[0], dynamic_shapes=shapes)
    for width in range(6):
        assert_equals_eager(exe, slices, *rows(0, 1, 3, width=width))


def test_sizes_of_a_spec_are_dynamic_within_their_bounds(tmp_path: Path) -> None:
    info = aot.InputInfo(((1, 2, 6), 3), torch.float32)
    exe = compiled(tmp_path, lambda x: x @ x.t(), (info,))
    assert_equals_eager(exe, lambda x: x @ x.t(), *rows(1, 2, 6), atol=1e-4)
    with pytest.raises(
        runtime.SignatureError, match=r"dimension 0 .* is 7, outside its range 1..6"
    ):
        exe(*rows(7)[0])


def test_dimensions_of_one_name_must_agree_in_a_call(tmp_path: Path) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cat([x, y], 1).sum(1)

    exe = compiled(
        tmp_path, program, (torch.randn(4, 3), torch.randn(4, 2)),
        dynamic_shapes=({0: "batch"}, {0: "batch"}),
    )  # fmt: skip
    assert_equals_eager(exe, program, *[(torch.randn(n, 3), torch.randn(n, 2)) for n in (1, 3, 9)])
    with pytest.raises(runtime.SignatureError, match=r"argument y.*'batch'.*is 2000.*x"):
        exe(torch.randn(10, 3), torch.randn(2000, 2))


def test_a_derived_size_is_checked_and_right(tmp_path: Path) -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return x.view(-1, 2, 3).sum(1) + y

    exe = compiled(
        tmp_path, program, (torch.randn(4, 3), torch.randn(2, 3)),
        dynamic_shapes=({0: 2 * BATCH}, {0: BATCH}),
    )  # fmt: skip
    calls = [(torch.randn(2 * n, 3), torch.randn(n, 3)) for n in (1, 2, 5, 8)]
    assert_equals_eager(exe, program, *calls)
    with pytest.raises(runtime.SignatureError, match=r"must be 2\*batch = 6 .*got 5"):
        exe(torch.randn(5, 3), torch.randn(3, 3))


def test_a_lone_derived_size_has_to_be_a_multiple(tmp_path: Path) -> None:
    exe = compiled(
        tmp_path, lambda x: x.view(-1, 2, 3), rows(4)[0], dynamic_shapes=({0: 2 * BATCH},)
    )
    assert_equals_eager(exe, lambda x: x.view(-1, 2, 3), *rows(2, 6, 16))
    with pytest.raises(runtime.SignatureError, match=r"dimension 0 must be 2\*batch, got 5"):
        exe(*rows(5)[0])
    with pytest.raises(runtime.SignatureError, match=r"outside its range 1\.\.8"):
        exe(*rows(18)[0])


def test_an_integer_argument_drives_sizes(tmp_path: Path) -> None:
    def program(x: torch.Tensor, n: int) -> torch.Tensor:
        return x.reshape(-1, n) * n

    info = aot.InputInfo((3, (2, 4, 8)), torch.float32)
    exe = compiled(tmp_path, program, (info, aot.DimensionInputInfo((1, 2, 4))))
    assert_equals_eager(
        exe, program, (torch.randn(3, 4), 2), (torch.randn(3, 2), 1), (torch.randn(3, 8), 4)
    )
    with pytest.raises(runtime.SignatureError, match=r"argument n .*is 5, outside its range 1..4"):
        exe(torch.randn(3, 5), 5)


class SelfAttention(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(16, 4, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.attention(x, x, x, need_weights=False)[0]


@pytest.mark.parametrize("example", [(2, 5), (1, 1)])
def test_multi_head_attention_is_right_at_every_batch_and_length(
    example: tuple[int, int], tmp_path: Path
) -> None:
    model = SelfAttention().eval()
    exe = compiled(
        tmp_path, model, (torch.randn(*example, 16),), dynamic_shapes=({0: "batch", 1: "length"},)
    )
    shapes = [(1, 1), (1, 7), (2, 5), (3, 1), (4, 9), (8, 16)]
    assert_equals_eager(exe, model, *[(torch.randn(*shape, 16),) for shape in shapes])


def test_reshapes_over_several_dynamic_sizes_are_right(tmp_path: Path) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        heads = x.reshape(batch, length, 4, -1).transpose(1, 2)
        return heads.reshape(batch * 4, length, -1).transpose(0, 1).reshape(length, batch, width)

    exe = compiled(tmp_path, program, (torch.randn(2, 5, 8),), dynamic_shapes=({0: "b", 1: "l"},))
    shapes = [(1, 1), (2, 5), (3, 4), (7, 2), (1, 9), (6, 1)]
    assert_equals_eager(exe, program, *[(torch.randn(*shape, 8),) for shape in shapes])


# What cannot be dynamic is an error that names the argument, the dimension and the line.


def fixing(x: torch.Tensor) -> torch.Tensor:
    y = x + 1
    return y.view(4, 3)


def branching(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] > 5:
        return x[:5]
    return x


def dividing(x: torch.Tensor) -> torch.Tensor:
    return x.view(-1, 2, 3)


def squeezing(x: torch.Tensor) -> torch.Tensor:
    return x.squeeze(0)


def line_of(function: object, offset: int) -> int:
    return function.__code__.co_firstlineno + offset  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("program", "offset", "reason"),
    [
        (fixing, 2, "the program fixes batch to 4"),
        (branching, 1, r"x\.shape\[0\] <= 5.*max=5"),
        (dividing, 1, r"% 6\) == 0.*batch = 2\*_batch"),
        (squeezing, 1, "drops dimension 0 only when its size is 1"),
    ],
)
def test_a_size_that_the_program_would_fix_is_refused(
    program: object, offset: int, reason: str
) -> None:
    with pytest.raises(aot.DynamicShapeError, match=reason) as caught:
        aot.export(program, torch.randn(4, 3), dynamic_shapes=({0: BATCH},))
    assert caught.value.location is not None
    assert caught.value.location.file == __file__
    assert caught.value.location.line == line_of(program, offset)


def test_a_refused_size_is_named_by_argument_dimension_and_name() -> None:
    with pytest.raises(aot.DynamicShapeError, match=r"argument x: dimension 0 \('batch'\)"):
        aot.export(fixing, torch.randn(4, 3), dynamic_shapes=({0: BATCH},))


def test_an_automatic_size_that_the_program_fixes_is_said_loudly() -> None:
    with pytest.warns(UserWarning, match=r"argument x: dimension 0 \(Dim.AUTO\) is fixed to 4"):
        aot.export(fixing, torch.randn(4, 3), dynamic_shapes=({0: Dim.AUTO},))


def test_a_size_that_is_fixed_is_fixed_for_all_of_the_compiler(tmp_path: Path) -> None:
    class Fixing(nn.Module):
        def forward(self, x: torch.Tensor, y: torch.Tensor, z: torch.Tensor) -> list[torch.Tensor]:
            chosen = torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x * 2, (x,))
            return [
                x.view(x.size(0), x.size(1), 2, 3), F.rms_norm(y, [4]),
                torch.view_as_complex(z).abs(), chosen,
            ]  # fmt: skip

    def calls(rows: int) -> tuple[torch.Tensor, ...]:
        return torch.rand(rows, 3, 6), torch.rand(rows, 4), torch.rand(rows, 2)

    axes = tuple({0: Dim.AUTO, last: Dim.AUTO} for last in (2, 1, 1))
    with pytest.warns(UserWarning, match=r"dimension . \(Dim.AUTO\) is fixed"):
        exe = compiled(tmp_path, Fixing(), calls(2), dynamic_shapes=axes)
    assert_equals_eager(exe, Fixing(), *map(calls, (1, 2, 5)))
    program = torch.export.export(Fixing(), calls(2), dynamic_shapes=axes)
    assert_equals_eager(compiled(tmp_path, program), Fixing(), *map(calls, (2, 5)))


def test_two_names_for_what_must_be_one_size_are_refused() -> None:
    with pytest.raises(aot.DynamicShapeError, match="must always be equal"):
        aot.export(
            torch.add, torch.randn(4), torch.randn(4), dynamic_shapes=(({0: "p"}, {0: "q"}),)
        )


@pytest.mark.parametrize(
    ("shapes", "message"),
    [
        ({"y": {0: "b"}}, "names 'y'; the parameters are x"),
        (({2: "b"},), "argument x: there is no dimension 2; it has 2"),
        (({0: 3.5},), "cannot read 3.5 as a size"),
        (({0: "b"}, {0: "b"}), "2 entries for 1 parameters"),
        (({0: aot.NamedDimension("b", 1, 2, 3), 1: Dim("b", max=9)},), "one name has one range"),
    ],
)
def test_dynamic_shapes_that_do_not_fit_are_refused(shapes: object, message: str) -> None:
    with pytest.raises(aot.DynamicShapeError, match=message):
        aot.export(lambda x: x + 1, torch.randn(4, 3), dynamic_shapes=shapes)


# What torch resolved for its examples is checked at each call.


def test_a_size_that_must_be_a_multiple_is_checked_at_the_call(tmp_path: Path) -> None:
    exe = compiled(tmp_path, dividing, rows(4)[0], dynamic_shapes=({0: Dim.DYNAMIC},))
    assert_equals_eager(exe, dividing, *rows(2, 6))
    with pytest.raises(runtime.SignatureError, match=r"needs .*% ?6 == 0, got x_dim0=5"):
        exe(*rows(5)[0])


def test_a_reshape_by_an_integer_argument_is_checked_at_the_call(tmp_path: Path) -> None:
    info = aot.InputInfo((3, (2, 4, 8)), torch.float32)
    exe = compiled(
        tmp_path, lambda x, n: x.reshape(-1, n), (info, aot.DimensionInputInfo((1, 2, 4)))
    )
    with pytest.raises(runtime.SignatureError, match=r"needs \(3\*x_dim1\)%n == 0, got n=4"):
        exe(torch.randn(3, 2), 4)


def special_for_one(x: torch.Tensor) -> torch.Tensor:
    if x.shape[0] == 1:
        return x * 7
    return x + 1


def test_a_branch_of_the_program_on_size_one_is_refused_or_checked(tmp_path: Path) -> None:
    with pytest.raises(aot.DynamicShapeError, match=r"x\.shape\[0\] != 1"):
        aot.export(special_for_one, *rows(4)[0], dynamic_shapes=({0: "batch"},))
    exe = compiled(tmp_path, special_for_one, rows(4)[0], dynamic_shapes=({0: Dim.DYNAMIC},))
    assert_equals_eager(exe, special_for_one, *rows(3))
    with pytest.raises(runtime.SignatureError, match="needs x_dim0 != 1, got x_dim0=1"):
        exe(*rows(1)[0])
