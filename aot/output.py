"""`ExportOutput`: the exported module with the verbs that users call on it."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from iree.compiler.api import Output, Session
from iree.compiler.ir import MLIRError, Operation

from pelton.runtime.archive import ParameterSource
from pelton.runtime.artifacts.vmfb import ParameterTable
from pelton.runtime.files import StrPath, atomic_path
from pelton.runtime.progress import stage

from .capture.parameters.archives import ParameterArchiveBuilder
from .ir.exported import ExportedModule, HasExported, Signatures, describe
from .ir.module import run_passes, write_module
from .lowering.import_phase import ImportPhase, lower_to
from .raising.onnx import OnnxProgram, to_onnx
from .raising.torch_program import open_module
from .spec.config import CONFIGURED, Configured
from .spec.errors import ExportError, ParameterError
from .spec.locations import warn_user
from .targets import Artifact, FunctionReport, ReportingTarget
from .targets.request import CompileRequest, Storage, compile_request
from .verify import Numerics, Report, Verification
from .verify.tuning import tune as find_fastest


class ExportOutput:
    """An exported module.

    CachedArtifact by `export`; the constructor is for who builds modules otherwise.

    Args:
        session: A compiler session whose flags `compile(target_backends=None)` uses, or None.
        compiled_module: The exported module, or what holds one, such as an instance of a
            `CompiledModule`.
        importer_uses_session: Accepted for compatibility; there is no difference.
    """

    def __init__(
        self,
        session: Session | None,
        compiled_module: HasExported,
        *,
        importer_uses_session: bool = False,
    ) -> None:
        self._session = session
        self.compiled_module = compiled_module
        self.exported: ExportedModule = compiled_module.exported
        """The exported module as data: what targets, `to_torch` and `tune` take."""

    def __repr__(self) -> str:
        return describe(self.exported)

    @property
    def session(self) -> Session:
        """A session for flags of the compiler; used by `compile(target_backends=None)`."""
        if self._session is None:
            self._session = Session()
        return self._session

    @property
    def mlir_module(self) -> Operation:
        """The MLIR module of the last phase."""
        return self.exported.module_op

    @property
    def signatures(self) -> Signatures:
        """The signature of each entry point by name."""
        return self.exported.signatures

    @property
    def parameters(self) -> ParameterTable:
        """Element type and shape of each external parameter, by scope and name."""
        return self.exported.parameter_table

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
        if self.exported.file is not None and self.parameters:
            raise ParameterError(
                f"{self.exported.file} has the names of parameters, not their values; "
                "save them where the model is exported"
            )
        held = self.exported.external_parameters
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
        program = to_onnx(open_module(self.exported, parameters), function)
        with stage(f"writing {file_path}"):
            path = program.save(file_path, external_data=external_data)
        return dataclasses.replace(program, path=path)

    def verify(
        self,
        *,
        numerics: bool | Numerics = False,
        artifact: StrPath | None = None,
        against: Any = None,
        parameters: Any = None,
        device: str | None = None,
        target: str = "cpu",
        **options: Any,
    ) -> Report:
        """Check the module with MLIR's verifier and, if asked, its compiled form with PyTorch.

        Args:
            numerics: Compile the module and compare what it computes, at several sizes and values;
                True, or what to try.
            artifact: A compiled file of this module to look at; None: it is compiled now.
            against: A module or function to compare with. None: what was exported, as it is now;
                where that is gone, or cannot be called, the module as `to_torch` runs it.
            parameters: Where external parameters come from, as for `runtime.load`; None: the
                tensors of the export.
            device: What to run on, as for `runtime.load`.
            target: What to compile for, as for `compile`.
            options: Options of the target.

        Returns:
            The comparisons; none where `numerics` is False.

        Raises:
            ExportError: The module is not valid, or nothing could be compared.
            NumericsError: The compiled program computes something else; has the report.
            CompileError: The compiler failed.

        Example:
            >>> from pelton import aot
            >>> rows = aot.InputInfo(((1, 2, 8), 4), torch.float32)
            >>> out = aot.export(torch.nn.Linear(4, 2), args=[rows])
            >>> out.verify(numerics=True).passed
            True
        """
        try:
            self.mlir_module.verify()
        except MLIRError as error:
            raise ExportError(f"the module is not valid: {error}") from error
        settings = Numerics.of(numerics)
        if settings is None:
            return Report()
        request = compile_request(target, options, Storage())
        check = self._verification(request, settings, parameters)
        device = device or request.target.checking_device(request.options)
        check = dataclasses.replace(check, device=device, against=against)
        if artifact is not None:
            return dataclasses.replace(check, artifact=artifact).report().check()
        with request.private_file() as path:
            with stage(f"compiling for {target}"):
                self._tell(
                    request.build(self.exported.with_parameters(parameters), path, private=True)
                )
            name = f"the module compiled for {target}"
            return dataclasses.replace(check, artifact=path, name=name).report().check()

    def _verification(
        self, request: CompileRequest, numerics: Numerics, parameters: Any = None
    ) -> Verification:
        """Return a verification of this module, without the artifact."""
        alone = dataclasses.replace(request, cache_dir=None)

        def build(part: ExportedModule, path: Path) -> None:
            alone.build(part, path)

        module = self.exported.with_parameters(parameters)
        return Verification(module, "", numerics, target=request.name, build=build)

    def import_to(self, import_to: ImportPhase | str | None) -> None:
        """Lower the module to a phase; does nothing where it is there already, or further.

        Raises:
            ExportError: There is no such phase, the lowering failed, or the body of a custom
                operator is wrong.
            UnsupportedOpError: Custom operators have no body; names all of them.
        """
        lower_to(self.mlir_module, import_to)

    def run_pass_pipeline(self, pipeline: str, enable_ir_printing: bool = False) -> None:
        """Run passes on the module, in place.

        Args:
            pipeline: The passes in their text form, as `PassManager.parse` reads it.
            enable_ir_printing: Print the module to stderr after each pass.

        Raises:
            ExportError: The text is no pipeline, or a pass failed; has the diagnostics.
        """
        run_passes(self.mlir_module, pipeline, enable_ir_printing)

    def compile(
        self,
        save_to: StrPath | Output | None = None,
        *,
        target: str = "cpu",
        target_backends: str | Sequence[str] | None = (),
        cache_dir: StrPath | Configured | None = CONFIGURED,
        timing_cache_file_path: StrPath | None = None,
        parameters: ParameterSource | Mapping[str, ParameterSource] | None = None,
        check: bool | Numerics = False,
        tune: bool = False,
        **options: Any,
    ) -> Output | None:
        """Compile the module.

        Args:
            save_to: A path, an `iree.compiler.api.Output`, or None.
            target: What to compile for: `cpu`, `cuda[:arch]`, `vulkan`, `rocm:arch`, `tensorrt`,
                or a backend of IREE.
            target_backends: The same as one or several names of IREE backends; None takes the
                flags set on `session`.
            cache_dir: Folder of the compile cache; None: no cache; default: `aot.config.cache_dir`.
            timing_cache_file_path: Where TensorRT keeps kernel timings; default: `aot.config`'s.
            parameters: The external parameters, for targets that put them into the artifact
                (`tensorrt`), as for `runtime.load`; None: the tensors that the module was exported
                with.
            check: Run what was compiled against PyTorch, as `verify(numerics=)`, before it is kept.
            tune: Time variants of the code on this machine and keep the fastest, as `aot.tune`
                does; the compile cache remembers which it was.
            options: Options of the target; see `targets.iree.IreeOptions` and
                `targets.tensorrt.TensorRTOptions`.

        Returns:
            With `save_to=None` the compiler's `Output`, whose `map_memory()` gives the bytes.

        Raises:
            CompileError: The compiler failed; has the diagnostics, a reproducer and the operators.
            UnsupportedOpError: The target cannot take the program; names all operators.
            ExportError: Unknown target or option, or parameters for a target that has no use for
                them.
            ParameterError: Parameters are missing, or of another type or shape.
            ArtifactError: `save_to` cannot be written.
            NumericsError: `check` found that the artifact computes something else.
        """
        target, options = self._backend(target, target_backends, options)
        if isinstance(save_to, (str, os.PathLike)):
            _check_suffix(Path(save_to), target)
        if tune:
            tuned = find_fastest(self.exported, target=target, cache_dir=cache_dir, **options)
            options = {**options, "variant": tuned.variant}
        request = compile_request(target, options, Storage(cache_dir, timing_cache_file_path))
        if parameters is not None and not request.target.holds_parameters:
            raise ExportError(
                f"target {target!r} leaves external parameters out of the artifact; give them to "
                "runtime.load(..., parameters=...)"
            )
        exported = self.exported.with_parameters(parameters)
        if isinstance(save_to, (str, os.PathLike)):
            with stage(f"compiling for {target}"), atomic_path(save_to) as temporary:
                final = Path(save_to)
                self._tell(request.build(exported, temporary, replaces=final))
                self.check_artifact(request, check, temporary, str(save_to), parameters)
            return None
        output = save_to if isinstance(save_to, Output) else Output.open_membuffer()
        with stage(f"compiling for {target}"), request.private_file() as path:
            self._tell(request.build(exported, path, private=True))
            name = f"the module compiled for {target}"
            self.check_artifact(request, check, path, name, parameters)
            output.write(path.read_bytes())
        return output if save_to is None else None

    def dry_run(
        self,
        target: str = "tensorrt",
        *,
        parameters: ParameterSource | Mapping[str, ParameterSource] | None = None,
        **options: Any,
    ) -> list[FunctionReport]:
        """Return for each entry point what a target would take, without building anything.

        Args:
            target: Only `tensorrt` has a dry run; IREE reports what it cannot take by compiling.
            parameters: As for `compile`.
            options: Options of the target.

        Raises:
            ExportError: Unknown target or option, or the target cannot tell.
            MissingDependencyError: The target's library is not installed.

        Example:
            >>> from pelton import aot
            >>> out = aot.export(lambda x: x.relu(), args=(torch.ones(2),))
            >>> (report,) = out.dry_run("tensorrt")
            >>> report.supported, report.operators
            (True, {'aten.relu.default': 1})
        """
        request = compile_request(target, options, Storage())
        if not isinstance(request.target, ReportingTarget):
            raise ExportError(
                f"target {target!r} has no dry run: it reports what it cannot take by compiling"
            )
        return request.target.report(self.exported.with_parameters(parameters), request.options)

    def check_artifact(
        self,
        request: CompileRequest,
        check: bool | Numerics,
        path: Path,
        name: str,
        parameters: ParameterSource | Mapping[str, ParameterSource] | None = None,
    ) -> None:
        """Run an artifact of this module against PyTorch, if that is asked for.

        Args:
            request: How it was compiled.
            check: As for `compile`.
            path: The artifact.
            name: What it is called in messages.
            parameters: As for `compile`.

        Raises:
            NumericsError: It computes something else.
        """
        settings = Numerics.of(check)
        if settings is not None:
            device = request.target.checking_device(request.options)
            found = self._verification(request, settings, parameters)
            dataclasses.replace(found, artifact=path, name=name, device=device).report().check()

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


def _check_suffix(path: Path, target: str) -> None:
    """Refuse the name of a TensorRT package for what is none."""
    if path.suffix == ".trtm" and target != "tensorrt":
        raise ExportError(
            f"{path} is the name of a TensorRT package, and the target is {target!r}; "
            "give target='tensorrt'"
        )
