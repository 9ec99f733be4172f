"""Every wrong use gives one error of ours: the right class, one sentence, the user's line."""

from __future__ import annotations

import traceback
from pathlib import Path

import pytest

from pelton.runtime.errors import PeltonError

from .cases import MISUSES, Misuse
from .page import PAGE, page

HERE = Path(__file__).parent


@pytest.mark.parametrize("case", MISUSES, ids=lambda case: case.name)
@pytest.mark.filterwarnings("ignore")
def test_a_wrong_use_is_told_in_one_sentence(case: Misuse, tmp_path: Path) -> None:
    before = set(tmp_path.iterdir())
    with pytest.raises(PeltonError) as caught:
        case.action(tmp_path)
    error = caught.value
    assert type(error) is case.error, repr(error)
    text = str(error)
    assert case.says in text
    assert len(text) > 20 and "Traceback" not in text and "object at 0x" not in text
    if case.line:
        assert error.location is not None or f"{HERE / 'cases.py'}:" in text, text
        assert str(HERE / "cases.py") in text
    frames = traceback.extract_tb(error.__traceback__)
    names = [Path(frame.filename).name for frame in frames]
    assert names.index("cases.py") <= 1  # the user's own line is the first that is shown
    written = {path.name for path in set(tmp_path.iterdir()) - before}
    assert not [name for name in written if name.endswith(".part")]


def test_there_are_sixty() -> None:
    assert len(MISUSES) >= 60
    assert len({case.name for case in MISUSES}) == len(MISUSES)


def test_the_page_is_current_and_has_every_class() -> None:
    assert PAGE.read_text() == page()
