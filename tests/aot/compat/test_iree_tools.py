"""Contract of the tools in the IREE compiler's package."""

from __future__ import annotations

import subprocess
from pathlib import Path

from pelton.aot.compat.iree_tools import opt_tool
from tests.contracts import contract


@contract("_mlir_libs/iree-opt", breaks="reading damaged .mlirbc files without a crash")
def test_tool_reads_a_module(tmp_path: Path) -> None:
    path = tmp_path / "module.mlir"
    path.write_text("func.func @main() { return }")
    done = subprocess.run([opt_tool(), path], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and "func.func @main" in done.stdout
