"""The job file: models x targets x options, and the jobs that they make.

A model is exported once, and what was exported is compiled for each pair of a target and a set of
options. Everything that can be checked without importing a model is checked while the file is read.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from pelton.runtime.errors import ArtifactError, ExportError
from pelton.runtime.files import StrPath

from ..inputs import parse_input

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_NAME = re.compile(r"[\w-]+")
_DEFAULT_OUTPUT = "out"
_SUFFIXES = {"tensorrt": ".trtm", "tensorrt_rtx": ".trtm"}
"""The suffixes of artifacts that are not `.vmfb`, by target."""


@dataclass(frozen=True)
class Job:
    """A piece of work with one file as its main result.

    Attributes:
        model: The model's name.
        folder: The job file's folder: what relative paths start from, and where modules are found.
        output: The file to write.
    """

    model: str
    folder: Path
    output: Path

    @property
    def name(self) -> str:
        """The job's own name; the files in the output folder start with it."""
        return self.model

    @property
    def needs(self) -> str | None:
        """The name of the job whose results this one reads."""
        return None

    @property
    def outputs(self) -> tuple[Path, ...]:
        """All files that the job writes."""
        return (self.output,)


@dataclass(frozen=True)
class ExportJob(Job):
    """Exports a model; the attributes are the options of `pelton export`.

    Attributes:
        program: `module:name`.
        inputs: What `--input` takes.
        external_parameters: Whether the weights go to an archive, or the scope that they get.
        function: The entry point's name.
        module_name: The MLIR module's name.
        strict: Whether to trace in strict mode.
        depends: More files that the export depends on.
    """

    program: str
    inputs: tuple[str, ...] = ()
    external_parameters: bool | str = False
    function: str | None = None
    module_name: str | None = None
    strict: bool = False
    depends: tuple[str, ...] = ()

    @property
    def archive(self) -> Path | None:
        """The archive of external parameters; None: there is none."""
        external = self.external_parameters is not False
        return self.output.with_suffix(".irpa") if external else None

    @property
    def outputs(self) -> tuple[Path, ...]:
        """The module, and the archive of its parameters."""
        return (self.output,) if self.archive is None else (self.output, self.archive)


@dataclass(frozen=True)
class CompileJob(Job):
    """Compiles what an export wrote.

    Attributes:
        module: The MLIR file.
        target: The target, as for `pelton compile --target`.
        options: The target's options.
        labels: The names of the target's table, and of the options' table if there are any.
    """

    module: Path
    target: str
    options: Mapping[str, Any]
    labels: tuple[str, ...]

    @property
    def name(self) -> str:
        """Model, target and options, joined by dots."""
        return ".".join((self.model, *self.labels))

    @property
    def needs(self) -> str:
        """The export of the model."""
        return self.model


def read_jobs(path: StrPath, output: StrPath | None = None) -> list[Job]:
    """Read a job file.

    Args:
        path: The TOML file; `docs/build.md` says what it may hold.
        output: Folder of the results; by default what the file says.

    Returns:
        The jobs; each export comes before the compiles that need it.

    Raises:
        ArtifactError: The file cannot be read, or something in it is not what it should be.
    """
    path = Path(path).absolute()
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ArtifactError(f"no such file: {path}") from None
    except OSError as error:
        raise ArtifactError(f"cannot read {path}: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ArtifactError(f"{path} is no TOML file: {error}") from error
    return list(_Reader(path, output).jobs(content))


_TABLES = ("output", "models", "targets", "options")
_MODEL_KEYS: dict[str, type | tuple[type, ...]] = {
    "program": str,
    "inputs": list,
    "external_parameters": (bool, str),
    "function": str,
    "module_name": str,
    "strict": bool,
    "depends": list,
    "targets": list,
    "options": list,
}
"""The keys of a model's table; the last two choose columns of the matrix."""


class _Reader:
    """Turns the content of a job file into jobs; its errors name the file and the place in it."""

    def __init__(self, path: Path, output: StrPath | None) -> None:
        self._path = path
        self._output = output

    def jobs(self, content: Mapping[str, Any]) -> Iterator[Job]:
        self._known(content, _TABLES, "the file")
        stated = self._typed(content.get("output", _DEFAULT_OUTPUT), str, "output")
        # What the command line names is relative to the current folder, the file's to the file.
        output = Path(self._output or self._path.parent / stated).absolute()
        models = self._tables(content, "models", needed=True)
        targets = self._tables(content, "targets", needed=False)
        options = self._tables(content, "options", needed=False)
        self._check_columns(targets, options)
        for name, table in models.items():
            yield from self._model(name, table, output, targets, options)

    def _model(
        self, name: str, table: Mapping[str, Any], output: Path, targets: Any, options: Any
    ) -> Iterator[Job]:
        place = f"[models.{name}]"
        self._known(table, _MODEL_KEYS, place)
        for key, value in table.items():
            self._typed(value, _MODEL_KEYS[key], f"{place} {key}")
        columns = {
            key: self._texts(table.get(key, list(every)), f"{place} {key}")
            for key, every in (("targets", targets), ("options", options))
        }
        given = {key: value for key, value in table.items() if key not in columns}
        for key in ("inputs", "depends"):
            given[key] = self._texts(given.get(key, []), f"{place} {key}")
        self._check_program(given, place)
        export = ExportJob(name, self._path.parent, output / f"{name}.mlirbc", **given)
        yield export
        for target in columns["targets"]:
            self._known({target: None}, targets, f"{place} targets")
            for option in columns["options"] or (None,):
                if option is not None:
                    self._known({option: None}, options, f"{place} options")
                yield self._compile(export, target, targets[target], option, options)

    def _compile(
        self, export: ExportJob, label: str, target: Mapping[str, Any], option: Any, options: Any
    ) -> CompileJob:
        chosen = dict(options[option]) if option is not None else {}
        own = {key: value for key, value in target.items() if key != "target"}
        labels = (label,) if option is None else (label, option)
        base = self._target(label, target)
        suffix = _SUFFIXES.get(base.partition(":")[0], ".vmfb")
        output = export.output.with_name(f"{'.'.join((export.model, *labels))}{suffix}")
        return CompileJob(
            export.model, export.folder, output, export.output, base, {**own, **chosen}, labels
        )

    def _check_columns(self, targets: Mapping[str, Any], options: Mapping[str, Any]) -> None:
        """Check each target with each set of options, of which a model may use any."""
        from pelton.aot.targets.request import Storage, compile_request

        for label, target in targets.items():
            own = {key: value for key, value in target.items() if key != "target"}
            chosen_by_name: dict[str | None, Any] = dict(options.items()) or {None: {}}
            for option, chosen in chosen_by_name.items():
                places = f"[targets.{label}]" + (f" with [options.{option}]" if option else "")
                both = sorted(own.keys() & chosen.keys())
                if both:
                    self._fail(places, f"both say {', '.join(both)}")
                try:
                    compile_request(
                        self._target(label, target), {**own, **chosen}, Storage(cache_dir=None)
                    )
                except (ExportError, TypeError) as error:
                    self._fail(places, str(error), error)

    def _target(self, label: str, target: Mapping[str, Any]) -> str:
        return str(self._typed(target.get("target", label), str, f"[targets.{label}] target"))

    def _check_program(self, given: Mapping[str, Any], place: str) -> None:
        module, colon, name = given.get("program", "").partition(":")
        if not (module and colon and name):
            what = repr(given["program"]) if "program" in given else "nothing"
            self._fail(f"{place} program", f"expected 'module:name', got {what}")
        for text in given["inputs"]:
            try:
                parse_input(text)
            except argparse.ArgumentTypeError as error:
                self._fail(f"{place} inputs", str(error), error)

    def _tables(self, content: Mapping[str, Any], key: str, *, needed: bool) -> dict[str, Any]:
        tables = self._typed(content.get(key, {}), dict, key)
        if needed and not tables:
            self._fail(f"[{key}]", "it is empty; a model is a table such as [models.net]")
        for name, table in tables.items():
            if not _NAME.fullmatch(name):
                self._fail(f"[{key}.{name!r}]", "names are letters, digits, _ and -")
            self._typed(table, dict, f"[{key}.{name}]")
        return dict(tables)

    def _texts(self, values: Any, place: str) -> tuple[str, ...]:
        return tuple(self._typed(value, str, place) for value in values)

    def _known(self, given: Mapping[str, Any], known: Any, place: str) -> None:
        unknown = [key for key in given if key not in known]
        if unknown:
            self._fail(place, f"unknown {', '.join(map(repr, unknown))}; known: {', '.join(known)}")

    def _typed(self, value: Any, kinds: type | tuple[type, ...], place: str) -> Any:
        if not isinstance(value, kinds):
            names = [
                _TOML_NAMES[kind] for kind in (kinds if isinstance(kinds, tuple) else (kinds,))
            ]
            self._fail(place, f"expected {' or '.join(names)}, got {value!r}")
        return value

    def _fail(self, place: str, problem: str, cause: Exception | None = None) -> None:
        raise ArtifactError(f"{self._path}: {place}: {problem}") from cause


_TOML_NAMES = {str: "a text", bool: "true or false", list: "a list", dict: "a table"}

MODEL_KEYS = tuple(_MODEL_KEYS)
"""What a model's table may hold."""

assert {field.name for field in fields(ExportJob)} >= set(MODEL_KEYS[:-2])
