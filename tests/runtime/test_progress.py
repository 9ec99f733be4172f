"""Progress reports: stages, steps and listeners."""

import contextlib
from collections.abc import Iterator

import pytest

from pelton.runtime.progress import listening, stage


class Recorder:
    def __init__(self) -> None:
        self.events: list[str] = []

    @contextlib.contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        self.events.append(f"begin {name}")
        yield
        self.events.append(f"end {name}")


def test_a_stage_is_told_from_begin_to_end() -> None:
    recorder = Recorder()
    with listening(recorder), stage("import"):
        assert recorder.events == ["begin import"]
    assert recorder.events == ["begin import", "end import"]


def test_nobody_needs_to_listen() -> None:
    with stage("import"):
        pass


def test_listening_ends_with_its_block_even_after_an_error() -> None:
    recorder = Recorder()
    with pytest.raises(KeyError), listening(recorder):
        raise KeyError
    with stage("import"):
        pass
    assert recorder.events == []


def test_an_inner_listener_goes_before_an_outer_one() -> None:
    outer, inner = Recorder(), Recorder()
    with listening(outer):
        with listening(inner), stage("a"):
            pass
        with stage("b"):
            pass
    assert (inner.events[0], outer.events[0]) == ("begin a", "begin b")
