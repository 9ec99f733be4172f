import re
from pathlib import Path

import pytest

README = Path(__file__).parents[1] / "README.md"


def test_the_examples_run_and_print_what_they_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    text = README.read_text()
    blocks = re.findall(r"```python\n(.*?)```", text, re.DOTALL)
    assert len(blocks) == 5
    # torch finds the source of a module by its file.
    script = tmp_path / "readme.py"
    script.write_text("\n".join(blocks))
    monkeypatch.chdir(tmp_path)
    exec(compile(script.read_text(), str(script), "exec"), {"__name__": "readme"})
    promised = re.findall(r"print\(.*\)\n((?:# .*\n)+)", script.read_text())
    words = " ".join(promised).replace("# ", " ").split()
    assert capsys.readouterr().out.split() == words
