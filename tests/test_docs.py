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
