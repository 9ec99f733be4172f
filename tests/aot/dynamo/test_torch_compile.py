"""torch.compile(model, backend="pelton"): what users of torch.compile rely on."""

from __future__ import annotations

import copy
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from pelton import aot

from ...programs import assert_same

COMPILED = {"fallback": False}


def compiled(program: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """Compile with an error in place of the fallback, so that nothing passes by running eager."""
    return torch.compile(program, backend="pelton", options=COMPILED, **options)


def assert_calls_equal_eager(program: Callable[..., Any], *calls: Any, **options: Any) -> None:
    """Compare results, and what became of the arguments, with eager."""
    fast = compiled(program, **options)
    for args in calls:
        mine, theirs = copy.deepcopy(args), copy.deepcopy(args)
        assert_same(fast(*mine), program(*theirs))
        assert_same(mine, theirs)


def graphs_of(program: Callable[..., Any], *args: Any) -> int:
    """Count the graphs that a call compiles."""
    torch._dynamo.utils.counters.clear()
    program(*args)
    return int(torch._dynamo.utils.counters["stats"]["unique_graphs"])


def test_the_back_end_is_found_without_importing_pelton() -> None:
    code = (
        "import sys, torch\n"
        "assert 'pelton' in torch._dynamo.list_backends()\n"
        "assert 'pelton.aot' not in sys.modules\n"
        "fast = torch.compile(lambda x: x + 1, backend='pelton')\n"
        "assert fast(torch.ones(2)).tolist() == [2, 2]\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")


def test_programs_of_several_graphs_run_python_between_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        y = x * 2
        print("between")
        return y + 1 if y.sum() > 0 else y - 1

    assert_calls_equal_eager(program, (torch.ones(3),), (-torch.ones(3),))
    assert capsys.readouterr().out == "between\n" * 4


def test_another_size_compiles_once_more_and_then_any_size_fits() -> None:
    fast = compiled(lambda x: (x @ x.t()).softmax(-1))
    assert graphs_of(fast, torch.randn(3, 4)) == 1
    assert graphs_of(fast, torch.randn(5, 4)) == 1
    x = torch.randn(9, 4)
    assert graphs_of(fast, x) == 0
    assert_same(fast(x), (x @ x.t()).softmax(-1))


def test_dynamic_sizes_are_results_and_shapes() -> None:
    def program(x: torch.Tensor, n: int) -> Any:
        return x.reshape(-1, 2) + n, x.shape[0] * x.shape[1], n + 1, {"x": x, "none": None}

    calls = [(torch.randn(4, 4), 2), (torch.randn(6, 4), 3), (torch.randn(6, 8), 5)]
    assert_calls_equal_eager(program, *calls, dynamic=True)


def test_marked_sizes_are_dynamic_at_once() -> None:
    fast = compiled(lambda x: x.sum(0))
    x = torch.randn(4, 3)
    torch._dynamo.mark_dynamic(x, 0, min=2, max=64)
    fast(x)
    assert graphs_of(fast, torch.randn(64, 3)) == 0


def test_sizes_of_zero_and_one_have_graphs_of_their_own() -> None:
    sizes = (2, 0, 1, 5)
    assert_calls_equal_eager(lambda x: x * 2 + 1, *[(torch.randn(n, 3),) for n in sizes])


def test_changed_weights_are_seen() -> None:
    model = nn.Linear(4, 2)
    fast, x = compiled(model), torch.randn(3, 4)
    fast(x)
    with torch.no_grad():
        model.weight.mul_(2)
    assert_same(fast(x), model(x).detach())
    model.load_state_dict({"weight": torch.ones(2, 4), "bias": torch.zeros(2)})
    assert_same(fast(x).detach(), x.sum(1, keepdim=True).expand(3, 2))


def test_weights_are_read_where_they_lie() -> None:
    model = nn.Linear(256, 256, bias=False).requires_grad_(False)
    from pelton.runtime.device.hal_arrays import HalTorchArrays

    fast, x = compiled(model), torch.randn(1, 256)
    fast(x)
    copied: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(HalTorchArrays, "_aligned_copy", lambda _, array: copied.append(array))
        patch.setattr(HalTorchArrays, "_owned_view", lambda _, *array: copied.append(array))
        fast(x)
    assert copied == []


class Cache(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("rows", torch.zeros(4, 3))
        self.register_buffer("count", torch.zeros(1, dtype=torch.int64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.rows.index_copy_(0, self.count, x[None])
        self.count += 1
        return self.rows.sum(0) * 2


def test_changes_of_buffers_are_changes_of_the_module() -> None:
    model = Cache()
    eager, fast = copy.deepcopy(model), compiled(model)
    for _ in range(3):
        x = torch.randn(3)
        assert_same(fast(x), eager(x))
    assert_same(dict(model.named_buffers()), dict(eager.named_buffers()))


def test_changes_of_arguments_are_seen_by_the_caller() -> None:
    def program(x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        row = x[0]
        row.add_(1)
        y.t().mul_(2)
        return row, x.sum() + y.sum()

    assert_calls_equal_eager(program, (torch.randn(3, 4), torch.randn(2, 2)))


def test_results_lie_in_memory_as_those_of_eager() -> None:
    def program(x: torch.Tensor) -> Any:
        moved = x.t() + 1
        return moved, moved.t(), moved[:, :2], x.permute(1, 0).unsqueeze(0) * 2

    x = torch.randn(3, 4)
    for mine, theirs in zip(compiled(program)(x), program(x), strict=True):
        assert mine.stride() == theirs.stride()
        assert_same(mine, theirs)


def test_inputs_may_be_strided_and_expanded() -> None:
    program = lambda x: x * 2 + x.sum()  # noqa: E731
    assert_calls_equal_eager(
        program, (torch.randn(4, 6).t(),), (torch.randn(8, 8)[::2, 1::2],), (torch.ones(3, 1),)
    )


def test_outputs_that_are_inputs_or_constants_need_no_program() -> None:
    assert_calls_equal_eager(lambda x: (x, x.view(-1), x[0], 3, None), (torch.ones(2, 3),))


@pytest.mark.parametrize("dtype", [torch.float64, torch.int32, torch.uint8, torch.bool])
def test_element_types_stay_as_they_are(dtype: torch.dtype) -> None:
    x = torch.tensor([0, 1, 3]).to(dtype)
    assert_calls_equal_eager(lambda x: (x | x) if not x.is_floating_point() else x * 2, (x,))


def test_autocast_and_inference_mode_are_part_of_the_graph() -> None:
    model = nn.Linear(8, 4)

    def program(x: torch.Tensor) -> torch.Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(x)

    x = torch.randn(2, 8)
    fast = compiled(program)
    with torch.inference_mode():
        result = fast(x)
        assert result.dtype is torch.bfloat16
        assert result.is_inference()
        assert_same(result, program(x), rtol=2e-2, atol=1e-2)


def test_random_numbers_are_those_of_torch() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        noise = torch.rand_like(x) + torch.randn(x.shape[0], 3)
        return torch.dropout(x.t() * 2, 0.5, True).t() + noise

    fast = compiled(program, dynamic=True)
    for size in (4, 6):
        x = torch.randn(size, 3)
        torch.manual_seed(size)
        expected = program(x)
        torch.manual_seed(size)
        assert_same(fast(x), expected)
        assert not torch.equal(fast(x), expected)


def test_calls_and_compiles_may_come_from_several_threads() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).requires_grad_(False)
    fast, failures = compiled(model), []

    def work(size: int) -> None:
        try:
            x = torch.randn(size, 8)
            for _ in range(20):
                assert_same(fast(x), model(x))
            aot.export(copy.deepcopy(model), args=(x,))
        except Exception as error:
            failures.append(error)

    threads = [threading.Thread(target=work, args=(size,)) for size in (2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_artifacts_come_from_the_compile_cache(tmp_path: Path) -> None:
    options = {**COMPILED, "cache_dir": tmp_path}
    x = torch.ones(3)

    def program(x: torch.Tensor) -> torch.Tensor:
        return x.exp() + 1

    for _ in range(2):
        torch._dynamo.reset()
        with pytest.MonkeyPatch.context() as patch:
            if list(tmp_path.rglob("*.json")):  # the second time, no compiler may run
                patch.setattr("pelton.aot.targets.iree.target.compile_file_isolated", None)
            assert_same(torch.compile(program, backend="pelton", options=options)(x), program(x))


def unsupported(x: torch.Tensor) -> torch.Tensor:
    y = torch.nextafter(x, x + 1)
    return y + torch.linalg.eigvals(torch.diag(x)).real


def test_what_cannot_be_compiled_runs_in_eager_with_one_notice() -> None:
    fast, x = torch.compile(unsupported, backend="pelton"), torch.ones(3)
    with pytest.warns(UserWarning, match="runs in eager") as caught:
        assert_same(fast(x), unsupported(x))
    (notice,) = caught
    assert "prims.nextafter.default" in str(notice.message)
    assert "aten.linalg_eig.default" in str(notice.message)
    line = unsupported.__code__.co_firstlineno + 1
    assert (notice.filename, notice.lineno) == (__file__, line)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fast(x)


def test_without_fallback_it_is_an_error_that_names_all_operators() -> None:
    with pytest.raises(aot.UnsupportedOpError, match="nextafter") as caught:
        compiled(unsupported)(torch.ones(3))
    assert caught.value.operators == ("prims.nextafter.default", "aten.linalg_eig.default")


def test_tensors_on_several_devices_are_refused() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        return x.to("meta") + 1

    with pytest.raises(aot.UnsupportedOpError, match="tensors on cpu, meta; target 'cpu'"):
        compiled(program)(torch.ones(3))
    with pytest.warns(UserWarning, match="tensors on cpu, meta"):
        assert torch.compile(program, backend="pelton")(torch.ones(3)).device.type == "meta"


def test_fullgraph_refuses_breaks() -> None:
    def program(x: torch.Tensor) -> torch.Tensor:
        print()
        return x + 1

    with pytest.raises(torch._dynamo.exc.Unsupported):
        compiled(program, fullgraph=True)(torch.ones(3))
