import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_and_paths_lead_to_files(page: Path) -> None:
    text = page.read_text()
    links = [page.parent / link for link in re.findall(r"\]\(([^):#]+)\)", text)]
    paths = [ROOT / path for path in re.findall(r"`((?:aot|runtime|docs)/[\w/.]*)`", text)]
    assert [str(path) for path in (*links, *paths) if not path.exists()] == []


RUN = ("bench.md", "custom_ops.md", "devices.md", "tensorrt.md")
"""The pages whose Python code runs, from the first line to the last."""


@pytest.mark.parametrize("page", RUN)
def test_code_of_a_page_runs(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / page).read_text()
    code = "\n".join(re.findall(r"```python\n(.*?)```", text, re.DOTALL))
    (tmp_path / "page.py").write_text(code)  # a file, so that messages and traces have lines
    exec(compile(code, str(tmp_path / "page.py"), "exec"), {"__name__": "page"})
