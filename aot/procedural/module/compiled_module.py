"""Compiled modules: classes whose methods become the entry points of one MLIR module."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, cast

from iree.compiler.ir import Context, Location, Module, Operation, StringAttr

from ...capture.trace import TRACING_LOCK
from ...compat.interpreter import calling_frame
from ...ir.builder import ModuleBuilder, ModuleBuilderOptions
from ...ir.exported import ExportedModule
from ...ir.module import run_passes, write_module
from ...lowering.import_phase import ImportPhase, lower_to
from ...spec.errors import ExportError
from ...spec.tensor_traits import DeviceAffinity
from ..calls.jittable import jittable
from .instance import ModuleInstance
from .module_decl import AnnotatedProcedure, ModuleDecl, read_class

CompiledModuleClassInfo = ModuleDecl
"""The type of `CompiledModule.get_class_info`."""

CompiledModuleInstanceInfo = ModuleInstance
"""The type of `CompiledModule.get_info`."""


class CompiledModule:
    """Base of classes that declare a module: entry points, globals and callables.

    A method whose name does not start with `_` is an entry point; the defaults of its parameters
    are their abstract types (in any tree), or constants. Attributes made by `export_global`,
    `export_global_tree`, `export_parameters` and `export_buffers` are globals. Methods may call
    each other, `jittable` functions, `nn.Module`s and `ExportedProgram`s of the class, and use
    helpers, properties, static methods and constants as any Python class does.

    An instance is the module, imported. `aot.export` takes the class.

    Args:
        context: The MLIR context to build in; default: the current one, else a new one.
        module_op: The module to build in, instead.
        import_to: How far to import: an `ImportPhase` or its name.

    Raises:
        ExportError: A procedure or program cannot be compiled; has the user's line.

    Example:
        >>> from pelton import aot
        >>> class Counter(CompiledModule):
        ...     count = aot.export_global(aot.AbstractI64, mutable=True)
        ...     def add(self, n=aot.AbstractI64):
        ...         self.count += n
        ...         return self.count
        >>> print(aot.export(Counter).signatures["add"])
        add(n: int) -> (int)
    """

    _decl: ClassVar[ModuleDecl | None] = None

    def __init_subclass__(
        cls,
        *,
        export_name: str | None = None,
        options: ModuleBuilderOptions | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init_subclass__(**kwargs)
        cls._decl = read_class(cls, export_name, options)

    def __init__(
        self,
        *,
        context: Context | None = None,
        module_op: Operation | None = None,
        import_to: ImportPhase | str | None = "import",
    ) -> None:
        decl = CompiledModule.get_class_info(type(self))
        phase = ImportPhase.parse(import_to)
        if context is not None and module_op is not None:
            raise ExportError("context= and module_op= were both given; use one")
        if module_op is None:
            module_op = _new_module(decl.export_name, context or _current_context())
        self._instance = ModuleInstance(decl, ModuleBuilder(module_op, options=decl.options))
        with TRACING_LOCK:
            self._instance.build(expand=phase is not ImportPhase.TORCH_IR)
        CompiledModule.run_import(self, phase)

    @property
    def module_op(self) -> Operation:
        """The MLIR module."""
        return self._instance.builder.module_op

    @property
    def exported(self) -> ExportedModule:
        """The module with its external parameters and inline data, as `ExportOutput` takes it."""
        return self._instance.builder.exported()

    @classmethod
    def create_from_dict(
        cls,
        name: str,
        dct: Mapping[str, Any],
        *,
        export_name: str | None = None,
        options: ModuleBuilderOptions | None = None,
    ) -> type[CompiledModule]:
        """Return a subclass with the given members; the unsugared form of a class statement.

        Args:
            name: The class's name.
            dct: Its members; not changed.
            export_name: The name of the MLIR module.
            options: Options of the module builder.

        Raises:
            ExportError: A member cannot be an entry point.

        Example:
            >>> made = CompiledModule.create_from_dict("Empty", {}, export_name="nothing")
            >>> CompiledModule.get_class_info(made).export_name
            'nothing'
        """
        caller = calling_frame(1).f_globals.get("__name__", __name__)
        members = {"__module__": caller, **dct}
        made = type(name, (cls,), members, export_name=export_name, options=options)
        return cast("type[CompiledModule]", made)

    @staticmethod
    def get_class_info(cls: type[CompiledModule]) -> ModuleDecl:
        """Return the declarations of a class.

        Raises:
            ExportError: `cls` is no subclass of `CompiledModule`.
        """
        decl = cls.__dict__.get("_decl") if isinstance(cls, type) else None
        if not isinstance(decl, ModuleDecl):
            raise ExportError(f"{cls!r} is no subclass of CompiledModule")
        return decl

    @staticmethod
    def get_info(inst: CompiledModule) -> ModuleInstance:
        """Return the module under construction that an instance was built as.

        Raises:
            ExportError: `inst` is no instance of a `CompiledModule`.
        """
        if not isinstance(inst, CompiledModule):
            raise ExportError(f"expected an instance of a CompiledModule, got {inst!r}")
        return inst._instance

    @staticmethod
    def get_module_builder(inst: CompiledModule) -> ModuleBuilder:
        """Return the builder of an instance.

        Raises:
            ExportError: `inst` is no instance of a `CompiledModule`.
        """
        return CompiledModule.get_info(inst).builder

    @staticmethod
    def get_mlir_module(inst: CompiledModule) -> Operation:
        """Return the MLIR module of an instance.

        Raises:
            ExportError: `inst` is no instance of a `CompiledModule`.
        """
        return CompiledModule.get_module_builder(inst).module_op

    @staticmethod
    def run_import(inst: CompiledModule, import_to: ImportPhase | str | None = "import") -> None:
        """Lower an instance to a phase, unless it is at that phase or after it.

        Raises:
            ExportError: There is no such phase, or the lowering failed.
        """
        lower_to(CompiledModule.get_mlir_module(inst), import_to)

    @staticmethod
    def run_pass_pipeline(
        inst: CompiledModule, pipeline: str, enable_ir_printing: bool = False
    ) -> None:
        """Run passes on an instance's module.

        Args:
            inst: The instance.
            pipeline: Their text form, as `PassManager.parse` reads it.
            enable_ir_printing: Print the module to stderr after each pass.

        Raises:
            ExportError: The text is no pipeline, or a pass failed; has the diagnostics.
        """
        run_passes(CompiledModule.get_mlir_module(inst), pipeline, enable_ir_printing)

    @staticmethod
    def expand_custom_ops(inst: CompiledModule) -> None:
        """Replace custom operators by their bodies, unless import has done so already.

        Raises:
            ExportError: `inst` is no instance of a `CompiledModule`, or a body is wrong.
            UnsupportedOpError: Operators have no body; names all of them.
        """
        CompiledModule.run_import(inst, ImportPhase.CUSTOM_OP_EXPANSION)

    @staticmethod
    def save_mlir(inst: CompiledModule, path: Path | str) -> None:
        """Write an instance's module: bytecode if the name ends in `.mlirbc`, else text.

        Raises:
            ArtifactError: The folder does not exist, or the path is a folder.
        """
        write_module(CompiledModule.get_mlir_module(inst), path)

    jittable = jittable

    @staticmethod
    def signature_info(
        *, arg_device: Mapping[int, DeviceAffinity] | None = None
    ) -> Callable[[Any], Any]:
        """Return a decorator that sets options of a method's signature.

        Args:
            arg_device: The device of each flat argument, by its position.
        """

        def annotate(function: Any) -> AnnotatedProcedure:
            return AnnotatedProcedure(function, arg_device)

        return annotate


def _current_context() -> Context | None:
    try:
        return Context.current
    except ValueError:
        return None


def _new_module(name: str, context: Context | None) -> Operation:
    module = Module.create(Location.unknown(context or Context()))
    with module.context:
        module.operation.attributes["sym_name"] = StringAttr.get(name)
    return module.operation
