"""`aot.compile`: what becomes an input, what is refused, and what the executable says."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from pelton import aot, runtime

FLOAT = torch.float32
N = aot.NamedDimension("n", 1, 4, 8)
VECTOR = aot.InputInfo((3,), FLOAT)
ONES = torch.ones(3)


@dataclasses.dataclass
class Pair:
    left: Any
    right: Any


def combine(
    x: torch.Tensor, cache: dict[str, Any], pair: Pair, *rest: torch.Tensor, scale: float = 2.0
) -> dict[str, Any]:
    """Use every kind of argument."""
    inner = cache["keys"][0] + cache["keys"][1] + cache["bias"]
    return {"sum": x + inner * scale + sum(rest), "pair": (pair.left * pair.right,)}


@pytest.fixture(scope="module")
def combined() -> runtime.Executable:
    cache = {"keys": [VECTOR, VECTOR], "bias": torch.full((3,), 10.0)}
    return aot.compile(combine, args=[VECTOR, cache, Pair(VECTOR, 3.0), ONES, VECTOR])


@pytest.fixture(scope="module")
def matmul() -> runtime.Executable:
    """A product with two named dimensions, one of them shared."""
    k = aot.NamedDimension("k", 2, 3, 5)
    left, right = aot.InputInfo((N, k), FLOAT), aot.InputInfo((k, 3), FLOAT)
    return aot.compile(lambda a, b: a @ b, args=[left, right])


def test_containers_of_specs_are_inputs(combined: runtime.Executable) -> None:
    paths = ["x", "cache['keys'][0]", "cache['keys'][1]", "pair.left", "rest[0]"]
    assert list(combined.input_infos) == paths


def test_call_takes_the_structure_without_constants(combined: runtime.Executable) -> None:
    result = combined(ONES, {"keys": [ONES, ONES * 2]}, Pair(ONES * 4, 3.0), ONES)
    expected = combine(
        ONES, {"keys": [ONES, ONES * 2], "bias": torch.full((3,), 10.0)}, Pair(ONES * 4, 3.0),
        ONES, ONES,
    )  # fmt: skip
    assert torch.equal(result["sum"], expected["sum"])
    assert torch.equal(result["pair"][0], expected["pair"][0])


def test_another_number_within_a_container_is_refused(combined: runtime.Executable) -> None:
    with pytest.raises(runtime.SignatureError, match=r"pair\.right was fixed to 3\.0"):
        combined(ONES, {"keys": [ONES, ONES]}, Pair(ONES, 4.0), ONES)


def test_constants_leave_the_signature(combined: runtime.Executable) -> None:
    assert list(inspect.signature(combined).parameters) == ["x", "cache", "pair", "rest"]


def test_tensor_constant_is_the_value_at_compile() -> None:
    weight = torch.ones(3)
    executable = aot.compile(lambda x, w: x * w, args=[VECTOR, weight])
    weight.zero_()
    assert torch.equal(executable(ONES), ONES)


def test_large_tensor_constant() -> None:
    weight = torch.rand(64, 64)
    executable = aot.compile(lambda x, w: x @ w, args=[aot.InputInfo((2, 64), FLOAT), weight])
    x = torch.rand(2, 64)
    torch.testing.assert_close(executable(x), x @ weight)


def test_module_in_a_closure_has_its_weights() -> None:
    linear = torch.nn.Linear(3, 2)
    executable = aot.compile(lambda x: linear(x) * 2, args=[VECTOR])
    torch.testing.assert_close(executable(ONES), linear(ONES).detach() * 2)


def test_buffers_of_a_module_are_state() -> None:
    class Counter(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("total", torch.zeros(3))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.total.add_(x)
            return self.total * 1

    executable = aot.compile(Counter(), args=[VECTOR])
    executable(ONES)
    assert executable(ONES).tolist() == [2, 2, 2]
    assert list(executable.state) == ["total"]


def test_external_weights_are_given_to_the_executable() -> None:
    linear = torch.nn.Linear(3, 2)
    aot.externalize_module_parameters(linear)
    executable = aot.compile(linear, args=[VECTOR])
    assert executable.info.parameters["model"].keys() == {"weight", "bias"}
    torch.testing.assert_close(executable(ONES), linear(ONES).detach())


def test_no_input_at_all_is_refused() -> None:
    with pytest.raises(aot.ExportError, match=r"has no input: give aot\.InputInfo"):
        aot.compile(lambda a, b: a + b, args=[ONES, ONES])


@pytest.mark.parametrize("wrong", [torch.nn.Linear, 3, "model.mlir"])
def test_neither_function_nor_module_is_refused(wrong: Any) -> None:
    with pytest.raises(aot.ExportError, match=r"cannot compile .*aot\.export"):
        aot.compile(wrong, args=[VECTOR])


def test_unknown_option_is_refused_before_tracing() -> None:
    with pytest.raises(aot.ExportError, match="no option 'optimisation'; known: "):
        aot.compile(lambda x: 1 / 0, args=[VECTOR], optimisation=3)


# Side effects -------------------------------------------------------------------------------------

TOTAL = 0
SEEN: list[int] = []
WEIGHT = torch.ones(3)


def rebinds_a_global(x: torch.Tensor) -> torch.Tensor:
    global TOTAL
    TOTAL += 1
    return x * 1


def fills_a_global(x: torch.Tensor) -> torch.Tensor:
    SEEN.append(1)
    return x * 1


def changes_a_tensor(x: torch.Tensor) -> torch.Tensor:
    WEIGHT.add_(1)
    return x * WEIGHT


def changes_its_argument(x: torch.Tensor) -> torch.Tensor:
    x[0].add_(1)
    return x * 1


class SetsAttribute(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.last = x + 1
        return x * 1


class Counts(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = torch.nn.Identity()
        self.inner.calls = 0

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.inner.calls += 1
        return x * 1


NORM = torch.nn.BatchNorm1d(3)


def trains_a_module(x: torch.Tensor) -> torch.Tensor:
    return NORM(x.reshape(1, 3).expand(2, 3))


@pytest.mark.parametrize(
    ("program", "name"),
    [
        (rebinds_a_global, "global 'TOTAL'"),
        (fills_a_global, "global 'SEEN'"),
        (changes_a_tensor, "global 'WEIGHT'"),
        (changes_its_argument, "argument x"),
        (SetsAttribute(), r"self\.last"),
        (Counts(), r"self\.inner\.calls"),
        (trains_a_module, r"global 'NORM'\.\w+"),
    ],
)
def test_side_effect_is_refused_by_name(program: Callable[..., Any], name: str) -> None:
    with pytest.raises(aot.ExportError, match=f"changes .*{name}.*test_compile.py"):
        aot.compile(program, args=[VECTOR])


def test_change_of_a_list_argument_is_refused() -> None:
    def appends(parts: list[torch.Tensor]) -> torch.Tensor:
        parts.append(parts[0])
        return parts[0] * 2

    with pytest.raises(aot.ExportError, match="changes argument parts,"):
        aot.compile(appends, args=[[VECTOR]])


def test_change_of_a_tensor_constant_is_refused() -> None:
    with pytest.raises(aot.ExportError, match="changes argument w"):
        aot.compile(lambda x, w: x + w.add_(1), args=[VECTOR, torch.ones(3)])


def test_bookkeeping_of_torch_layers_is_no_side_effect() -> None:
    lstm = torch.nn.LSTM(3, 2)
    x = torch.rand(4, 3)
    executable = aot.compile(lstm, args=[aot.InputInfo((4, 3), FLOAT)])
    torch.testing.assert_close(executable(x)[0], lstm(x)[0].detach())


def test_local_changes_are_no_side_effects() -> None:
    def local(x: torch.Tensor) -> torch.Tensor:
        parts = [x]
        parts.append(x * 2)
        total = torch.zeros(3)
        for part in parts:
            total.add_(part)
        return total

    assert aot.compile(local, args=[VECTOR])(ONES).tolist() == [3, 3, 3]


@pytest.mark.parametrize(
    ("program", "what"),
    [
        (lambda x: {"a": x, "n": 2}, r"result\['n'\] is 2"),
        (lambda x: x.shape[0], "result is 3"),
        (lambda x: None, "this returns none"),
    ],
)
def test_result_without_a_tensor_is_refused(program: Callable[..., Any], what: str) -> None:
    with pytest.raises(aot.ExportError, match=f"returns tensors, but {what}"):
        aot.compile(program, args=[VECTOR])


def test_dynamic_size_as_a_result_is_refused() -> None:
    with pytest.raises(aot.ExportError, match="result is an int of a size"):
        aot.compile(lambda x: x.shape[0], args=[aot.InputInfo((N,), FLOAT)])


# Calls --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 4, 6, 8])
@pytest.mark.parametrize("k", [2, 3, 4, 5])
def test_numbers_over_the_ranges(matmul: runtime.Executable, n: int, k: int) -> None:
    a, b = torch.rand(n, k), torch.rand(k, 3)
    torch.testing.assert_close(matmul(a, b), a @ b)
    torch.testing.assert_close(matmul(b=b, a=a), a @ b)


def test_ranges_and_names_survive_save_and_load(matmul: runtime.Executable, tmp_path: Path) -> None:
    matmul.save(tmp_path / "matmul.vmfb")
    again = runtime.Executable.load(tmp_path / "matmul.vmfb")
    assert str(again) == str(matmul)
    assert again.input_infos == matmul.input_infos
    with pytest.raises(runtime.SignatureError, match=r"'k'\) is 4, but .* is 3"):
        again(torch.ones(1, 3), torch.ones(4, 3))
    with pytest.raises(runtime.SignatureError, match=r"'n'\) is 9, outside its range 1\.\.8"):
        again(torch.ones(9, 3), torch.ones(3, 3))


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((torch.ones(9, 3), torch.ones(3, 3)), {}, r"a: dimension 0 \('n'\) is 9, .* 1\.\.8"),
        ((torch.ones(0, 3), torch.ones(3, 3)), {}, r"a: dimension 0 \('n'\) is 0, .* 1\.\.8"),
        ((torch.ones(1, 3), torch.ones(2, 3)), {}, r"b: dimension 0 \('k'\) is 2, but .* is 3"),
        ((torch.ones(1, 3), torch.ones(3, 4)), {}, r"b: dimension 1 is fixed to 3, got 4"),
        (
            (torch.ones(1, 3).double(), torch.ones(3, 3)),
            {},
            r"a expects float32\[n, k\], .*64",
        ),
        ((torch.ones(3), torch.ones(3, 3)), {}, r"a expects .* with 2 dimensions, .* with 1"),
        ((torch.ones(1, 3),), {}, "missing a required argument: 'b'"),
        ((torch.ones(1, 3),) * 3, {}, r"too many .* \(3 given; extra: float32\[1, 3\]\)"),
        ((torch.ones(1, 3),), {"c": 1}, "'b'|unexpected keyword argument 'c'"),
        ((2.5, torch.ones(3, 3)), {}, r"a expects a tensor float32\[n, k\], got float 2\.5"),
    ],
)
def test_wrong_call_is_explained(
    matmul: runtime.Executable, args: Any, kwargs: Any, message: str
) -> None:
    with pytest.raises(runtime.SignatureError, match=rf"main\(\): .*{message}"):
        matmul(*args, **kwargs)


def test_wrong_device_names_the_argument(matmul: runtime.Executable) -> None:
    with pytest.raises(runtime.DeviceError, match=r"argument b: a tensor on meta"):
        matmul(torch.ones(1, 3), torch.ones(3, 3, device="meta"))


def test_executable_prints_its_signature(matmul: runtime.Executable) -> None:
    assert str(matmul).splitlines() == [
        "Executable on local-task:",
        "  main(a: float32[n, k], b: float32[k, 3]) -> (float32[n, 3]) where n=1..8, k=2..5",
    ]


# Profiles -----------------------------------------------------------------------------------------

PROFILES = {"token": {"n": 1}, "prompt": {N: (4, 5, 8)}}


@pytest.fixture(scope="module")
def with_profiles(tmp_path_factory: pytest.TempPathFactory) -> runtime.Executable:
    """Compiled from a saved module, so that the profiles have been through both files."""
    folder = tmp_path_factory.mktemp("profiles")
    out = aot.export(lambda x: x * 2, args=[aot.InputInfo((N, 3), FLOAT)], profiles=PROFILES)
    out.save_mlir(folder / "double.mlirbc")
    aot.export(folder / "double.mlirbc").compile(folder / "double.vmfb")
    return runtime.load(folder / "double.vmfb")


def test_profiles_survive_all_files(with_profiles: runtime.Executable) -> None:
    profiles = with_profiles.functions["main"].signature.profiles
    assert [(profile.name, profile.bounds) for profile in profiles] == [
        ("token", {"n": (1, 1, 1)}),
        ("prompt", {"n": (4, 5, 8)}),
    ]


@pytest.mark.parametrize("n", [1, 4, 5, 8])
def test_call_in_a_profile(with_profiles: runtime.Executable, n: int) -> None:
    x = torch.rand(n, 3)
    assert torch.equal(with_profiles(x), x * 2)


def test_call_in_no_profile_names_them(with_profiles: runtime.Executable) -> None:
    with pytest.raises(runtime.SignatureError, match=r"no profile takes n=2 .*'token' .*'prompt'"):
        with_profiles(torch.ones(2, 3))


def test_profiles_without_names_are_numbered() -> None:
    spec = aot.InputInfo(((1, 2, 4),), FLOAT)
    executable = aot.compile(
        lambda x: x * 2, args=[spec], profiles=[{"x_dim0": 1}, {"x_dim0": (3, 4, 4)}]
    )
    with pytest.raises(runtime.SignatureError, match=r"'0' \(x_dim0=1\.\.1\), '1' \("):
        executable(torch.ones(2))


@pytest.mark.parametrize(
    ("profiles", "message"),
    [
        ([{"m": 1}], "profile '0': no dynamic dimension 'm'; there are: n=1..8"),
        ({"wide": {"n": (1, 4, 9)}}, "profile 'wide': .* has bounds 1..9, outside its range 1..8"),
        ({"wide": {"n": (4, 1, 8)}}, "profile 'wide': dimension 'n' has bounds"),
        ([{}], "profile '0' must give bounds by dimension"),
        ("token", "profiles must be a sequence of"),
        ({1: {"n": 1}}, "the name of a profile must be text"),
    ],
)
def test_wrong_profile_is_explained(profiles: Any, message: str) -> None:
    with pytest.raises(aot.ExportError, match=message):
        aot.export(lambda x: x * 2, args=[aot.InputInfo((N,), FLOAT)], profiles=profiles)
