import os
import time
from pathlib import Path

from pelton.cli.jobs.files import FileFacts, ReadFiles, all_hold, facts_of

LARGE = b"x" * (2 << 20)


def test_a_file_that_is_gone_is_not_what_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one")
    facts = facts_of([path, tmp_path / "missing"])
    assert list(facts) == [str(path)] and all_hold(facts)
    path.unlink()
    assert not all_hold(facts)


def test_small_files_are_compared_by_content_whatever_their_time(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(b"one")
    facts = FileFacts.of(path)
    os.utime(path, ns=(0, 0))
    assert facts.hold_for(path)
    path.write_bytes(b"two")
    os.utime(path, ns=(facts.modified_ns, facts.modified_ns))
    assert not facts.hold_for(path)


def test_large_files_are_compared_by_content_if_their_time_changed(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_bytes(LARGE)
    facts = FileFacts.of(path)
    os.utime(path, ns=(0, 0))
    assert facts.hold_for(path)
    path.write_bytes(LARGE[:-1] + b"y")
    assert not facts.hold_for(path)


def old(path: Path, content: str = "content") -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(content)
    os.utime(path, ns=(0, 0))
    return path


def test_files_that_python_opens_are_noted(tmp_path: Path) -> None:
    read_files = ReadFiles()
    read, written, before = (old(tmp_path / name) for name in ("read", "written", "before"))
    stated = old(tmp_path / "stated")
    before.read_text()
    with read_files.watching():
        read.read_text()
        written.write_text("new")
    before.read_text()
    noted = read_files.facts([stated])
    here = {Path(path).name for path in noted if Path(path).is_relative_to(tmp_path)}
    assert here == {"read", "stated"}
    assert noted[str(read)] == FileFacts.of(read)


def test_the_modules_of_the_program_are_noted_and_no_others() -> None:
    noted = ReadFiles().facts()
    assert str(Path(__file__)) in noted
    assert not any("site-packages" in path or path.startswith("/proc") for path in noted)


def test_a_file_that_changes_while_it_is_read_never_holds(tmp_path: Path) -> None:
    read_files = ReadFiles()
    path = tmp_path / "a"
    path.write_text("new")
    os.utime(path, ns=(time.time_ns(), time.time_ns()))
    with read_files.watching():
        path.read_text()
    assert not all_hold({str(path): read_files.facts()[str(path)]})
