"""Parameter archives: files of every format, and the parameters of a program."""

import gc
import os
import shutil
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
import torch

from pelton.runtime.archive import check_parameters, load_parameters, open_archive, write_archive
from pelton.runtime.archive.parameter import blob_of, parameter_of
from pelton.runtime.archive.parameter_set import ParameterSet
from pelton.runtime.call.dtypes import DTYPES
from pelton.runtime.errors import ArtifactError, ParameterError
from tests.runtime.archives import WEIGHT, varied_parameters

FLOAT = DTYPES["float32"]


def run_child(code: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=60)


# Opening


@pytest.mark.parametrize(
    ("name", "contents", "message"),
    [
        ("a.irpa", b"", "is empty"),
        ("a.irpa", b"nothing known", "holds no parameters: it is unknown"),
        ("a.mlir", b"module {}", "holds no parameters: it is MLIR text"),
        ("a.irpa", b"IRPA", r"a\.irpa is not a valid IREE parameter archive"),
        ("a.json", b"{}", "not an index"),
    ],
)
def test_file_that_is_no_archive_is_refused(
    tmp_path: Path, name: str, contents: bytes, message: str
) -> None:
    (tmp_path / name).write_bytes(contents)
    with pytest.raises(ArtifactError, match=message):
        open_archive(tmp_path / name)


@pytest.mark.parametrize("name", ["missing.irpa", "missing.index.json"])
def test_missing_file_is_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(ArtifactError, match="missing"):
        open_archive(tmp_path / name)


@pytest.mark.parametrize("mapped", [True, False])
def test_file_is_told_by_its_first_bytes_and_not_its_name(tmp_path: Path, mapped: bool) -> None:
    write_archive(tmp_path / "a.irpa", [parameter_of("weight", WEIGHT)])
    path = (tmp_path / "a.irpa").rename(tmp_path / "a.bin")
    np.testing.assert_array_equal(open_archive(path, mapped=mapped)["weight"].array(), WEIGHT)


def test_private_changes_do_not_reach_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.irpa"
    write_archive(path, [parameter_of("weight", WEIGHT)])
    open_archive(path, access="private")["weight"].contents()[:] = 0
    np.testing.assert_array_equal(open_archive(path)["weight"].array(), WEIGHT)


def test_written_changes_reach_the_file(tmp_path: Path) -> None:
    path = tmp_path / "a.irpa"
    write_archive(path, [parameter_of("weight", WEIGHT)])
    open_archive(path, access="write")["weight"].contents()[:] = 0
    assert not open_archive(path)["weight"].array().any()


def test_private_changes_survive_a_write(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.irpa", [parameter_of("weight", WEIGHT)])
    changed = open_archive(tmp_path / "a.irpa", access="private")
    changed["weight"].contents()[:] = 0
    write_archive(tmp_path / "b.irpa", changed.values())
    write_archive(tmp_path / "c.irpa", [parameter_of("weight", changed["weight"].array())])
    assert not changed["weight"].array().any()
    assert not open_archive(tmp_path / "c.irpa")["weight"].array().any()


def test_contents_outlive_the_set_they_came_from(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.irpa", [parameter_of("weight", WEIGHT)])
    array = open_archive(tmp_path / "a.irpa")["weight"].array()
    gc.collect()
    np.testing.assert_array_equal(array, WEIGHT)


def test_archives_work_without_torch(tmp_path: Path) -> None:
    code = """
        import sys
        import numpy as np
        from pelton.runtime.archive import open_archive, write_archive
        from pelton.runtime.parameter import parameter_of
        write_archive(sys.argv[1], [parameter_of("a", np.zeros(3))])
        assert open_archive(sys.argv[1])["a"].shape == (3,)
        assert "torch" not in sys.modules
    """
    child = run_child(code, tmp_path / "a.irpa")
    assert child.returncode == 0, child.stderr


# Writing


def test_unknown_suffix_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"must end in one of \.irpa, \.safetensors"):
        write_archive(tmp_path / "a.bin", [])


def test_name_that_comes_twice_is_not_written(tmp_path: Path) -> None:
    twice = [parameter_of("weight", WEIGHT), parameter_of("weight", WEIGHT + 1)]
    with pytest.raises(ParameterError, match=r"more than once .*'weight'"):
        write_archive(tmp_path / "a.irpa", twice)


@pytest.mark.parametrize("suffix", [".irpa", ".safetensors"])
def test_archive_of_nothing_is_an_archive(tmp_path: Path, suffix: str) -> None:
    write_archive(tmp_path / f"a{suffix}", [])
    assert len(open_archive(tmp_path / f"a{suffix}")) == 0


def test_progress_counts_every_byte(tmp_path: Path) -> None:
    counted: list[int] = []
    parameters = ParameterSet(varied_parameters())
    write_archive(tmp_path / "a.irpa", parameters.values(), progress=counted.append)
    assert sum(counted) == parameters.nbytes


def test_killed_save_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "a.irpa"
    write_archive(path, [parameter_of("weight", WEIGHT)])
    before = path.read_bytes()
    code = """
        import signal, sys
        import numpy as np
        from pelton.runtime.archive import write_archive
        from pelton.runtime.parameter import parameter_of

        def wait(nbytes):
            print("writing", flush=True)
            signal.pause()

        write_archive(sys.argv[1], [parameter_of("a", np.ones(8 << 20))], progress=wait)
    """
    command = [sys.executable, "-c", textwrap.dedent(code), str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as child:
        assert child.stdout is not None and child.stdout.readline() == b"writing\n"
        child.send_signal(signal.SIGKILL)
    assert path.read_bytes() == before


def test_file_that_grows_too_large_leaves_the_old_one_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "a.irpa"
    write_archive(path, [parameter_of("weight", WEIGHT)])
    before = path.read_bytes()
    code = """
        import resource, sys
        import numpy as np
        from pelton.runtime.archive import write_archive
        from pelton.runtime.errors import ArtifactError
        from pelton.runtime.parameter import parameter_of

        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
        try:
            write_archive(sys.argv[1], [parameter_of("a", np.ones(1 << 20))])
        except ArtifactError as error:
            print(error)
    """
    child = run_child(code, path)
    assert f"cannot write {path}: File too large; it takes" in child.stdout, child.stderr
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["a.irpa"]


def test_full_disk_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    code = """
        import os, sys
        import numpy as np
        from pelton.runtime.archive import open_archive, write_archive
        from pelton.runtime.errors import ArtifactError
        from pelton.runtime.parameter import parameter_of

        for suffix in (".irpa", ".safetensors"):
            path = os.path.join(sys.argv[1], "a" + suffix)
            write_archive(path, [parameter_of("old", np.ones(3))])
            try:
                write_archive(path, [parameter_of("new", np.ones(1 << 18))])
            except ArtifactError as error:
                print(error)
            assert list(open_archive(path)) == ["old"]
            assert open_archive(path)["old"].array().tolist() == [1, 1, 1]
            assert os.listdir(sys.argv[1]) == ["a" + suffix]
            os.unlink(path)
    """
    small_disk = 'mount -t tmpfs -o size=1m none "$1" && exec "$2" -c "$3" "$1"'
    names = [str(tmp_path), sys.executable, textwrap.dedent(code)]
    namespace = ["unshare", "--map-root-user", "--mount"]
    if not shutil.which("unshare") or subprocess.run([*namespace, "true"]).returncode:
        pytest.skip("this system lets users mount no file systems")
    child = subprocess.run(
        [*namespace, "sh", "-c", small_disk, "sh", *names], capture_output=True, text=True
    )
    assert child.returncode == 0, child.stderr
    assert child.stdout.count("No space left on device; it takes") == 2, child.stdout


def test_write_needs_little_memory_whatever_the_size(tmp_path: Path) -> None:
    code = """
        import resource, sys
        import numpy as np
        from pelton.runtime.archive import open_archive, write_archive
        from pelton.runtime.parameter import parameter_of

        def peak():
            return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

        wide = np.broadcast_to(np.ones(1 << 20, np.float32), (64, 1 << 20))
        write_archive(sys.argv[1], [parameter_of("small", wide[:1])])
        before = peak()
        write_archive(sys.argv[1], [parameter_of("wide", wide), parameter_of("tall", wide[:8].T)])
        write_archive(sys.argv[2], open_archive(sys.argv[1]).values())
        print(peak() - before)
    """
    child = run_child(code, tmp_path / "a.irpa", tmp_path / "b.safetensors")
    assert child.returncode == 0, child.stderr
    assert int(child.stdout) < 64 << 10


# Sets of parameters, as programs are given them


def test_parameters_are_given_by_a_path_for_all_scopes(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.irpa", [parameter_of("weight", WEIGHT)])
    given = load_parameters(tmp_path / "a.irpa", ["one", "two"])
    assert list(given) == ["one", "two"]
    assert given["one"] is given["two"]


def test_parameters_are_given_by_several_files(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.irpa", [parameter_of("a", WEIGHT)])
    write_archive(tmp_path / "b.safetensors", [parameter_of("b", WEIGHT)])
    given = load_parameters({"model": [tmp_path / "a.irpa", str(tmp_path / "b.safetensors")]})
    assert list(given["model"]) == ["a", "b"]


def test_name_in_two_of_the_files_given_is_refused(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.irpa", [parameter_of("a", WEIGHT)])
    write_archive(tmp_path / "b.irpa", [parameter_of("a", WEIGHT)])
    with pytest.raises(ParameterError, match=r"a\.irpa, .*b\.irpa: 'a'"):
        load_parameters([tmp_path / "a.irpa", tmp_path / "b.irpa"])


def test_parameters_are_given_by_a_state_dict() -> None:
    module = torch.nn.Linear(2, 3)
    given = load_parameters(module.state_dict())["model"]
    assert given["weight"].array().ctypes.data == module.weight.data_ptr()


def test_parameters_are_given_by_a_set_that_is_shared() -> None:
    shared = ParameterSet([parameter_of("weight", WEIGHT)])
    assert load_parameters(shared)["model"] is shared
    assert load_parameters({"a": shared})["a"] is shared


def test_nothing_given_is_nothing() -> None:
    assert load_parameters(None) == {}
    assert load_parameters({}) == {}


def test_scopes_and_names_cannot_be_mixed(tmp_path: Path) -> None:
    with pytest.raises(ParameterError, match=r"by scope \('model'\) and by name"):
        load_parameters({"model": tmp_path / "a.irpa", "weight": WEIGHT})


@pytest.mark.parametrize("given", [3, WEIGHT])
def test_what_is_no_source_of_parameters_is_refused(given: object) -> None:
    with pytest.raises(ParameterError, match="a file, a list of files, or a mapping"):
        load_parameters(given)  # type: ignore[arg-type]


def test_all_that_does_not_fit_is_listed_at_once() -> None:
    needed = {
        "model": {
            "gone": (FLOAT, (1,)),
            "lost": (DTYPES["int8"], ()),
            "cast": (DTYPES["float16"], (2, 3)),
            "turned": (FLOAT, (3, 2)),
            "right": (FLOAT, (2, 3)),
        }
    }
    names = ("cast", "turned", "right", "extra", "more")
    given = load_parameters({name: WEIGHT + i for i, name in enumerate(names)})
    with pytest.raises(ParameterError) as caught:
        check_parameters(needed, given)
    assert str(caught.value).splitlines() == [
        "the parameters do not fit the program:",
        "  missing (2): model::gone (float32 1), model::lost (int8 scalar)",
        "  of another element type (1): model::cast: float16 2x3, given float32 2x3",
        "  of another shape (1): model::turned: float32 3x2, given float32 2x3",
        "  not used by the program (2): extra (float32 2x3) from memory, "
        "more (float32 2x3) from memory",
    ]


def test_blob_does_not_stand_for_a_tensor() -> None:
    given = {"model": ParameterSet([blob_of("weight", bytes(24))])}
    with pytest.raises(ParameterError, match="given blob of 24 bytes"):
        check_parameters({"model": {"weight": (FLOAT, (2, 3))}}, given)


def test_scope_that_is_not_given_misses_all_its_names() -> None:
    with pytest.raises(ParameterError, match=r"missing \(1\): other::a"):
        check_parameters({"other": {"a": (FLOAT, (1,))}}, {})


def test_scope_that_the_program_lacks_is_refused() -> None:
    with pytest.raises(ParameterError, match=r"not used by the program \(1\): weight"):
        check_parameters({}, load_parameters({"other": {"weight": WEIGHT}}))


def test_further_name_of_a_tied_tensor_is_no_extra() -> None:
    given = load_parameters({"weight": WEIGHT, "tied": WEIGHT})
    check_parameters({"model": {"weight": (FLOAT, (2, 3))}}, given)


def test_file_of_several_scopes_is_used_when_each_name_is_used_by_one(tmp_path: Path) -> None:
    write_archive(tmp_path / "a.irpa", [parameter_of("a", WEIGHT), parameter_of("b", WEIGHT)])
    needed = {"one": {"a": (FLOAT, (2, 3))}, "two": {"b": (FLOAT, (2, 3))}}
    check_parameters(needed, load_parameters(tmp_path / "a.irpa", needed))
    path = str(tmp_path / "a.irpa")
    check_parameters(needed, load_parameters({"one": path, "two": path}))


def test_unused_parameters_are_accepted_on_request() -> None:
    check_parameters({}, load_parameters({"weight": WEIGHT}), allow_unused=True)
