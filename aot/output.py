"""What `export` returns: one MLIR module with its signatures and its table of parameters."""

from __future__ import annotations

import dataclasses
import enum
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from iree.compiler.api import Output, Session
from iree.compiler.ir import MLIRError, Operation
from iree.compiler.passmanager import PassManager

from pelton.runtime.archive import ParameterSource
from pelton.runtime.files import StrPath, atomic_path
from pelton.runtime.progress import stage
from pelton.runtime.signature import Signature
from pelton.runtime.vmfb import ParameterTable

from .artifacts import Storage, recipe
from .builder import ExternalParameter
from .config import CONFIGURED, Configured
from .errors import ExportError, ParameterError, warn_user
from .fingerprint import Resources
from .mlir_module import parameters_of, signatures_of, write_module
from .params import ParameterArchiveBuilder
from .targets import Artifact
from .targets.onnx import OnnxProgram, to_onnx
from .to_torch import open_module
from .tuning import tune as find_fastest


class ImportPhase(enum.Enum):
    """How far a module has gone towards the compiler's own dialects."""

    TORCH_IR = 0
    """As traced, with custom operators."""
    CUSTOM_OP_EXPANSION = 1
    """Custom operators replaced by their bodies."""
    IREE_INTERNAL = 2
    """In IREE's input dialects; no longer raisable."""
    IMPORT = 1
    """The usual one."""
    FULL = 2
    """All that happens before compilation."""

    @staticmethod
    def parse(phase: ImportPhase | str | None) -> ImportPhase:
        """Return a phase by name, in any case, with `-` for `_`; None is the usual one.

        Raises:
            ExportError: There is no such phase.

        Example:
            >>> ImportPhase.parse("full") is ImportPhase.IREE_INTERNAL
            True
        """
        if phase is None:
            return ImportPhase.IMPORT
        if isinstance(phase, ImportPhase):
            return phase
        name = str(phase).upper().replace("-", "_")
        if name not in ImportPhase.__members__:
            known = ", ".join(ImportPhase.__members__).lower()
            raise ExportError(f"unknown import phase {phase!r}; known: {known}")
        return ImportPhase[name]


class BuiltModule(Protocol):
    """What an `ExportOutput` holds: a finished module and the tensors of its parameters."""

    @property
    def module_op(self) -> Operation:
        """The module."""

    @property
    def external_parameters(self) -> Sequence[ExternalParameter]:
        """The parameters that it takes from archives, with their tensors."""


class ExportOutput:
    """An exported module.

    Made by `export`; the constructor is for who builds modules otherwise.

    Args:
        session: A compiler session whose flags `compile(target_backends=None)` uses, or None.
        compiled_module: The built module.
        importer_uses_session: Accepted for compatibility; there is no difference.
    """

    def __init__(
        self,
        session: Session | None,
        compiled_module: BuiltModule,
        *,
        importer_uses_session: bool = False,
    ) -> None:
        self._session = session
        self.compiled_module = compiled_module
        self.resources = Resources(getattr(compiled_module, "resources", {}))
        """The large data of the module, as far as it was made here and not read from a file."""
        self._phase = ImportPhase.IMPORT
        self._loaded_from: Path | None = None

    @property
    def session(self) -> Session:
        """A session for flags of the compiler; used by `compile(target_backends=None)`."""
        if self._session is None:
            self._session = Session()
        return self._session

    @property
    def mlir_module(self) -> Operation:
        """The MLIR module of the last phase."""
        return self.compiled_module.module_op

    @property
    def signatures(self) -> dict[str, Signature]:
        """The signature of each entry point by name."""
        return signatures_of(self.mlir_module)

    @property
    def parameters(self) -> ParameterTable:
        """Element type and shape of each external parameter, by scope and name."""
        return parameters_of(self.mlir_module)

    def print_readable(self, large_elements_limit: int = 50) -> None:
        """Print the module; values of more than `large_elements_limit` elements are left out."""
        self.mlir_module.print(
            large_elements_limit=large_elements_limit, large_resource_limit=large_elements_limit
        )

    def save_mlir(self, file_path: StrPath) -> None:
        """Write the module, atomically: bytecode if the name ends in `.mlirbc`, else text.

        Raises:
            ArtifactError: The folder does not exist, or the path is a folder.
        """
        with stage(f"writing {file_path}"):
            write_module(self.mlir_module, file_path)

    def save_parameters(self, file_path: StrPath, *, scope: str | None = None) -> Path:
        """Write the external parameters that the module needs, and nothing else.

        Args:
            file_path: An `.irpa` or `.safetensors` file.
            scope: Only those of this scope; needed where there are several.

        Returns:
            The path written.

        Raises:
            ParameterError: The module was loaded from a file and has no tensors, or there are
                several scopes and none is named.
        """
        if self._loaded_from is not None and self.parameters:
            raise ParameterError(
                f"{self._loaded_from} has the names of parameters, not their values; "
                "save them where the model is exported"
            )
        held = self.compiled_module.external_parameters
        scopes = sorted({parameter.scope for parameter in held})
        if scope is None and len(scopes) > 1:
            raise ParameterError(f"there are several scopes ({', '.join(scopes)}); name one")
        if scope is not None and scope not in scopes:
            raise ParameterError(f"there is no scope {scope!r}; there are: {', '.join(scopes)}")
        archive = ParameterArchiveBuilder()
        for parameter in held:
            if scope in (None, parameter.scope):
                archive.add_tensor(parameter.name, parameter.tensor)
        with stage(f"writing {file_path}"):
            return archive.save(file_path)

    def to_onnx(
        self,
        file_path: StrPath,
        function: str | None = None,
        *,
        parameters: ParameterSource | Mapping[str, ParameterSource] | None = None,
        external_data: bool | None = None,
    ) -> OnnxProgram:
        """Write an entry point as an ONNX model; state becomes inputs and outputs of it.

        Args:
            file_path: The `.onnx` file.
            function: The entry point; None: the only one.
            parameters: The external parameters, as for `runtime.load`; None: the tensors that the
                module was exported with.
            external_data: Put the weights into a file of their own, of its name with `.data`
                appended; None: only where they would not fit into the model.

        Returns:
            The model, with what its inputs and outputs stand for.

        Raises:
            MissingDependencyError: `onnx` or `onnxscript` is not installed.
            UnsupportedOpError: Operators that have no form in ONNX; all of them.
            ExportError: It is not clear which entry point is meant, or a size would be fixed.
            ParameterError: External parameters are missing, or of another type or shape.
            ArtifactError: The file cannot be written.
        """
        program = to_onnx(open_module(self, parameters), function)
        with stage(f"writing {file_path}"):
            path = program.save(file_path, external_data=external_data)
        return dataclasses.replace(program, path=path)

    def verify(self) -> None:
        """Check the module with MLIR's verifier.

        Raises:
            ExportError: It is not valid.
        """
        try:
            self.mlir_module.verify()
        except MLIRError as error:
            raise ExportError(f"the module is not valid: {error}") from error

    def import_to(self, import_to: ImportPhase | str | None) -> None:
        """Lower the module to a phase; does nothing where it is there already.

        Raises:
            ExportError: There is no such phase, or the lowering failed.
        """
        phase = ImportPhase.parse(import_to)
        if phase is ImportPhase.IREE_INTERNAL and self._phase is not phase:
            try:
                with self.mlir_module.context:
                    PassManager.parse("builtin.module(torch-to-iree)").run(self.mlir_module)
            except MLIRError as error:
                raise ExportError(f"lowering to {phase.name.lower()} failed: {error}") from error
            self._phase = phase

    def compile(
        self,
        save_to: StrPath | Output | None = None,
        *,
        target: str = "cpu",
        target_backends: str | Sequence[str] | None = (),
        cache_dir: StrPath | Configured | None = CONFIGURED,
        timing_cache_file_path: StrPath | None = None,
        tune: bool = False,
        **options: Any,
    ) -> Output | None:
        """Compile the module.

        Args:
            save_to: A path, an `iree.compiler.api.Output`, or None.
            target: What to compile for: `cpu`, `cuda[:arch]`, `vulkan`, `rocm:arch`, or a backend
                of IREE.
            target_backends: The same as one or several names of IREE backends; None takes the
                flags set on `session`.
            cache_dir: Folder of the compile cache; None: no cache; default: `aot.config.cache_dir`.
            timing_cache_file_path: Where TensorRT keeps kernel timings; default: `aot.config`'s.
            tune: Time variants of the code on this machine and keep the fastest, as `aot.tune`
                does; the compile cache remembers which it was.
            options: Options of the target; see `targets.iree.IreeOptions`.

        Returns:
            With `save_to=None` the compiler's `Output`, whose `map_memory()` gives the bytes.

        Raises:
            CompileError: The compiler failed; has the diagnostics, a reproducer and the operators.
            ExportError: Unknown target or option.
            ArtifactError: `save_to` cannot be written.
        """
        target, options = self._backend(target, target_backends, options)
        if tune:
            tuned = find_fastest(self, target=target, cache_dir=cache_dir, **options)
            options = {**options, "variant": tuned.variant}
        made = recipe(target, options, Storage(cache_dir, timing_cache_file_path))
        if isinstance(save_to, (str, os.PathLike)):
            with stage(f"compiling for {target}"), atomic_path(save_to) as temporary:
                final = Path(save_to)
                self._tell(made.make(self.mlir_module, self.resources, temporary, replaces=final))
            return None
        output = save_to if isinstance(save_to, Output) else Output.open_membuffer()
        with stage(f"compiling for {target}"), made.private_file() as path:
            self._tell(made.make(self.mlir_module, self.resources, path, private=True))
            output.write(path.read_bytes())
        return output if save_to is None else None

    def _backend(
        self, target: str, backends: str | Sequence[str] | None, options: dict[str, Any]
    ) -> tuple[str, dict[str, Any]]:
        if backends is None:
            flags = [*self.session.get_flags(non_default_only=True), *options.pop("flags", ())]
            return target, {**options, "flags": flags}
        names = backends.split(",") if isinstance(backends, str) else list(backends)
        if len(names) > 1:
            raise ExportError(
                f"target_backends names {len(names)} backends ({', '.join(names)}); an artifact "
                "has one target: compile once for each"
            )
        return (names[0] if names else target), options

    @staticmethod
    def _tell(artifact: Artifact) -> None:
        for note in artifact.notes:
            warn_user(note)
