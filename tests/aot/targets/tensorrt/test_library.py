"""The libraries that build engines: which is taken, for which GPUs, and what they log."""

from __future__ import annotations

import pytest
import torch

from pelton.aot.spec.errors import ExportError
from pelton.aot.targets.tensorrt import library
from pelton.aot.targets.tensorrt.library import Log, compute_capabilities, find_flavor, open_library
from pelton.runtime.errors import DeviceError, MissingDependencyError


def test_errors_are_told_without_their_severity_and_all_lines_with_it() -> None:
    log = Log()
    log.lines += ["WARNING: a: b", "ERROR: c: d", "INTERNAL_ERROR: e", "VERBOSE: ERROR: no"]
    assert log.errors == ["c: d", "e"]
    assert log.text.splitlines() == log.lines
    assert (Log().errors, Log().text) == ([], "")


@pytest.mark.parametrize(
    ("installed", "gpu", "flavor"),
    [
        ({"rtx"}, False, "rtx"), ({"rtx"}, True, "rtx"), ({"tensorrt"}, False, "tensorrt"),
        ({"rtx", "tensorrt"}, False, "rtx"), ({"rtx", "tensorrt"}, True, "tensorrt"),
    ],
    ids=["rtx", "rtx on a GPU", "tensorrt", "both", "both on a GPU"],
)  # fmt: skip
def test_tensorrt_is_taken_where_it_and_a_gpu_are_there(
    installed: set[str], gpu: bool, flavor: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "_is_installed", installed.__contains__)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: gpu)
    assert find_flavor("auto") == flavor


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("auto", r"neither is installed: pip install 'pelton\[rtx\]'"),
        ("rtx", r"TensorRT-RTX, and tensorrt_rtx is not installed: pip install 'pelton\[rtx\]'"),
        ("tensorrt", r"and tensorrt is not installed: pip install 'pelton\[tensorrt\]'"),
    ],
)
def test_a_library_that_is_missing_is_named_with_the_command(
    asked: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "_is_installed", lambda flavor: False)
    with pytest.raises(MissingDependencyError, match=message):
        find_flavor(asked)


def test_a_library_that_cannot_be_loaded_is_told_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(library.FLAVORS, "rtx", ("pelton_has_no_such_module", "TensorRT-RTX"))
    with pytest.raises(MissingDependencyError, match=r"TensorRT-RTX cannot be loaded: .*no_such"):
        open_library("rtx")


def test_tensorrt_builds_on_its_gpu_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(DeviceError, match="take flavor 'rtx', which builds anywhere"):
        open_library("tensorrt")


def test_the_gpus_to_build_for_are_those_asked_for_in_their_order() -> None:
    assert compute_capabilities("rtx", ()) == library.RTX_DEFAULT_CAPABILITIES
    assert compute_capabilities("rtx", ("8.9", "7.5")) == ("8.9", "7.5")


def test_gpus_that_the_library_does_not_know_are_named_with_those_that_it_does() -> None:
    with pytest.raises(ExportError, match=r"TensorRT-RTX cannot build for 9\.0, 1\.0 here; it can"):
        compute_capabilities("rtx", ("9.0", "8.9", "1.0"))


def test_tensorrt_builds_for_the_gpu_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda: (9, 0))
    assert compute_capabilities("tensorrt", ()) == ("9.0",)
    with pytest.raises(ExportError, match=r"cannot build for 8\.9 here; it can for 9\.0"):
        compute_capabilities("tensorrt", ("8.9",))


def test_a_log_has_what_was_logged_in_its_block_only() -> None:
    pytest.importorskip("tensorrt_rtx")
    rtx = open_library("rtx")
    severity = rtx.module.ILogger.Severity
    with rtx.logging() as (logger, first):
        logger.log(severity.WARNING, "one\n  two")
        logger.log(severity.INFO, "left out")
    logger.log(severity.ERROR, "between")
    with rtx.logging() as (again, second):
        again.log(severity.ERROR, "three")
    assert again is logger
    assert (first.lines, second.lines) == (["WARNING: one two"], ["ERROR: three"])
    assert library.installed_version("rtx") == rtx.version
