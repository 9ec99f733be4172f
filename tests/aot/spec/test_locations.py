"""Which source files are the program's own."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from pathlib import Path

from pelton import aot
from pelton.aot.spec.locations import is_user_file


def test_packages_of_another_environment_are_packages(tmp_path: Path) -> None:
    folder = tmp_path / "lib" / "site-packages"
    folder.mkdir(parents=True)
    code = (
        "import sys; from pelton.aot.spec.locations import is_installed_file, is_user_file\n"
        "other, torch = sys.argv[1] + '/model.py', sys.argv[1] + '/torch/nn.py'\n"
        "print(is_installed_file(other), is_user_file(other), is_user_file(torch))"
    )
    path = os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-c", code, str(folder)]
    environment = {**os.environ, "PYTHONPATH": path}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert (done.returncode, done.stdout) == (0, "True True False\n"), done.stderr


def test_files_of_every_room_of_the_package_are_not_the_users() -> None:
    rooms = (aot, aot.export, aot.CompiledModule.get_class_info)
    assert [is_user_file(inspect.getsourcefile(room) or "") for room in rooms] == [False] * 3
    assert is_user_file(__file__)
