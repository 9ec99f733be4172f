from pathlib import Path

import pytest

from pelton.cli.jobs.matrix import MODEL_KEYS, CompileJob, ExportJob, Job, read_jobs
from pelton.runtime.errors import ArtifactError

MODEL = '[models.net]\nprogram = "zoo:net"\n'


def read(folder: Path, text: str) -> list[Job]:
    (folder / "jobs.toml").write_text(text)
    return read_jobs(folder / "jobs.toml")


def test_models_targets_and_options_are_multiplied(tmp_path: Path) -> None:
    text = f"""
    {MODEL}
    inputs = ["b=1..8x3xf32"]
    external_parameters = "small"
    [models.two]
    program = "zoo:two"
    targets = ["gpu"]
    options = []
    [targets.cpu]
    [targets.gpu]
    target = "cuda:sm_80"
    [options.fast]
    optimization_level = 5
    [options.small]
    flags = ["--a"]
    """
    jobs = read(tmp_path, text)
    assert [job.name for job in jobs] == [
        "net", "net.cpu.fast", "net.cpu.small", "net.gpu.fast", "net.gpu.small", "two", "two.gpu",
    ]  # fmt: skip
    out = tmp_path / "out"
    assert jobs[0] == ExportJob(
        "net", tmp_path, out / "net.mlirbc", "zoo:net", ("b=1..8x3xf32",), "small"
    )
    assert jobs[0].outputs == (out / "net.mlirbc", out / "net.irpa")
    assert jobs[2] == CompileJob(
        "net",
        tmp_path,
        out / "net.cpu.small.vmfb",
        out / "net.mlirbc",
        "cpu",
        {"flags": ["--a"]},
        ("cpu", "small"),
    )
    assert (jobs[2].needs, jobs[5].needs) == ("net", None)
    last = jobs[-1]
    assert isinstance(last, CompileJob) and (last.target, last.options) == ("cuda:sm_80", {})


def test_a_model_may_be_exported_only(tmp_path: Path) -> None:
    assert [job.outputs for job in read(tmp_path, MODEL)] == [(tmp_path / "out" / "net.mlirbc",)]


def test_the_output_folder_is_relative_to_what_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("sub").mkdir()
    Path("sub/jobs.toml").write_text(f'output = "made"\n{MODEL}')
    assert read_jobs("sub/jobs.toml")[0].output == tmp_path / "sub" / "made" / "net.mlirbc"
    assert read_jobs("sub/jobs.toml", "made")[0].output == tmp_path / "made" / "net.mlirbc"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("models = 3", "models: expected a table, got 3"),
        ("[models]", r"\[models\]: it is empty; a model is a table such as \[models.net\]"),
        ("[models.net", "is no TOML file: "),
        ("[model.net]", "the file: unknown 'model'; known: output, models, targets, options"),
        ('[models."a/b"]', r"\[models.'a/b'\]: names are letters, digits, _ and -"),
        ("[models.net]", r"\[models.net\] program: expected 'module:name', got nothing"),
        ('[models.net]\nprogram = "net"', "program: expected 'module:name', got 'net'"),
        (f"{MODEL}input = 3", r"\[models.net\]: unknown 'input'; known: program, inputs, "),
        (f"{MODEL}inputs = [3]", r"\[models.net\] inputs: expected a text, got 3"),
        (f"{MODEL}inputs = ['3xf99']", r"\[models.net\] inputs: unknown element type 'f99'"),
        (
            f"{MODEL}external_parameters = 1",
            "external_parameters: expected true or false or a text",
        ),
        (f"{MODEL}targets = ['cpu']", r"\[models.net\] targets: unknown 'cpu'; known: "),
        (
            f"{MODEL}[targets.cpuu]",
            r"\[targets.cpuu\]: unknown target 'cpuu'; .* did you mean 'cpu'",
        ),
        (f"{MODEL}[targets.cpu]\ntarget = 3", r"\[targets.cpu\] target: expected a text, got 3"),
        (
            f"{MODEL}[targets.cpu]\n[options.o]\nlevel = 3",
            r"\[targets.cpu\] with \[options.o\]: target 'cpu' has no option 'level'; known: opt",
        ),
        (
            f"{MODEL}[targets.cpu]\nisolate = true\n[options.o]\nisolate = false",
            r"\[targets.cpu\] with \[options.o\]: both say isolate",
        ),
        (
            f"{MODEL}[targets.cpu]\n[options.o]\noptimization_level = 9",
            "optimization_level must be 0 to 5, got 9",
        ),
    ],
)
def test_a_mistake_is_told_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(ArtifactError, match=message) as caught:
        read(tmp_path, text)
    assert str(tmp_path / "jobs.toml") in str(caught.value)


def test_a_missing_file_is_told(tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match="no such file: "):
        read_jobs(tmp_path / "jobs.toml")


def test_the_manual_names_every_key() -> None:
    manual = (Path(__file__).parents[3] / "docs" / "build.md").read_text()
    rows = [line for line in manual.splitlines() if line.startswith("| `")]
    assert [key for key in MODEL_KEYS if not any(f"`{key}`" in row for row in rows)] == []
