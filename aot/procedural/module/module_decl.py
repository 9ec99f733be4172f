"""Declarations of a `CompiledModule` class, read once when the class is created."""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch.export import ExportedProgram

from pelton.runtime.call import pytrees
from pelton.runtime.errors import SignatureError

from ...ir.builder import ModuleBuilderOptions
from ...spec.errors import ExportError, SourceLocation
from ...spec.inputs import DimensionInputInfo, InputInfo
from ...spec.locations import location_of_function, user_location
from ...spec.tensor_traits import DeviceAffinity
from ..globals.declaration import GlobalsDef
from ..globals.types import AbstractIntrinsic, AbstractTypedef, from_spec

_SPECS = (InputInfo, DimensionInputInfo)
_CONSTANTS = (bool, int, float, str, torch.dtype, torch.device)


@dataclass(frozen=True)
class AnnotatedProcedure:
    """A method with options of its signature; created by `CompiledModule.signature_info`.

    Attributes:
        function: The method.
        arg_device: The device of each flat argument, by its position.
    """

    function: types.FunctionType
    arg_device: Mapping[int, DeviceAffinity] | None = None

    def __get__(self, instance: Any, owner: type | None = None) -> Any:
        return self.function.__get__(instance, owner)


@dataclass(frozen=True)
class ProcedureDecl:
    """A method that becomes an entry point.

    Attributes:
        name: Its name.
        function: The Python function.
        defaults: For each parameter but `self`: a tree of abstract types and constants.
        signature: The Python signature without `self`.
        location: Its location in the user's source.
        arg_device: The device of each flat argument, by its position.
    """

    name: str
    function: types.FunctionType
    defaults: Mapping[str, Any]
    signature: inspect.Signature
    location: SourceLocation
    arg_device: Mapping[int, DeviceAffinity] | None = None


@dataclass(frozen=True)
class ModuleDecl:
    """The declarations of a `CompiledModule` class.

    Attributes:
        cls: The class.
        export_name: The name of the MLIR module.
        options: Options of the module builder.
        globals: The declarations of globals, by attribute.
        procedures: The methods that are entry points, by name.
        programs: The exported programs, by attribute.
    """

    cls: type
    export_name: str
    options: ModuleBuilderOptions | None = None
    globals: Mapping[str, GlobalsDef] = field(default_factory=dict)
    procedures: Mapping[str, ProcedureDecl] = field(default_factory=dict)
    programs: Mapping[str, ExportedProgram] = field(default_factory=dict)

    def names(self) -> list[str]:
        """Return the attribute names of a procedure's `self`."""
        found = dict.fromkeys((*self.globals, *self.procedures, *self.programs))
        for cls in _declaring_classes(self.cls):
            found.update(dict.fromkeys(name for name in vars(cls) if not _is_dunder(name)))
        return list(found)


def read_class(
    cls: type, export_name: str | None = None, options: ModuleBuilderOptions | None = None
) -> ModuleDecl:
    """Return the declarations of a class.

    Args:
        cls: A subclass of `CompiledModule`.
        export_name: The name of the MLIR module; None: derived from the class's name.
        options: Options of the module builder.

    Raises:
        ExportError: A method cannot be an entry point; has its line.
    """
    globals_: dict[str, GlobalsDef] = {}
    procedures: dict[str, ProcedureDecl] = {}
    programs: dict[str, ExportedProgram] = {}
    for name, value in _members(cls):
        is_function = isinstance(value, (types.FunctionType, AnnotatedProcedure))
        if name in _RESERVED:
            raise ExportError(
                f"{cls.__qualname__}.{name} cannot be declared: modules have an attribute of that "
                "name",
                location=_location_of(value) if is_function else user_location(),
            )
        if isinstance(value, GlobalsDef):
            globals_[name] = value
        elif isinstance(value, ExportedProgram):
            programs[name] = value
        elif is_function and not name.startswith("_"):
            procedures[name] = _read_procedure(cls, name, value)
    return ModuleDecl(
        cls, export_name or module_name_of(cls.__name__), options, globals_, procedures, programs
    )


_RESERVED = ("exported", "module_op")


def module_name_of(class_name: str) -> str:
    """Return the name of the MLIR module of a class.

    Example:
        >>> module_name_of("MyDecoderModule"), module_name_of("GPT2"), module_name_of("Module")
        ('my_decoder', 'g_p_t2', 'module')
    """
    stem = class_name.removesuffix("Module") or class_name
    return re.sub(r"(?<!^)(?=[A-Z])", "_", stem).lower()


def _declaring_classes(cls: type) -> list[type]:
    """Return the user's classes of the hierarchy, the most derived first."""
    root = next(base for base in cls.__mro__ if vars(base).get("_decl", cls) is None)
    return [
        base for base in cls.__mro__ if base not in (object, root) and base.__module__ != "typing"
    ]


def _members(cls: type) -> Iterator[tuple[str, Any]]:
    """Yield the class's members, then those of its bases that it does not override."""
    seen: set[str] = set()
    for base in _declaring_classes(cls):
        for name, value in vars(base).items():
            if name not in seen and not _is_dunder(name):
                seen.add(name)
                yield name, value


def _is_dunder(name: str) -> bool:
    return name.startswith("__") and name.endswith("__")


def _location_of(value: types.FunctionType | AnnotatedProcedure) -> SourceLocation:
    function = value.function if isinstance(value, AnnotatedProcedure) else value
    location = location_of_function(function)
    assert location is not None, function  # a method of a class is made in Python
    return location


def _read_procedure(
    cls: type, name: str, value: types.FunctionType | AnnotatedProcedure
) -> ProcedureDecl:
    function = value.function if isinstance(value, AnnotatedProcedure) else value
    location = _location_of(value)
    where = f"{cls.__qualname__}.{name}()"
    signature = inspect.signature(function)
    parameters = list(signature.parameters.values())[1:]
    if not signature.parameters:
        raise ExportError(
            f"{where} takes no self; add it, or make it a @staticmethod", location=location
        )
    defaults = {p.name: _default_of(where, p, location) for p in parameters}
    return ProcedureDecl(
        name,
        function,
        defaults,
        signature.replace(parameters=parameters),
        location,
        value.arg_device if isinstance(value, AnnotatedProcedure) else None,
    )


def _default_of(where: str, parameter: inspect.Parameter, location: SourceLocation) -> Any:
    """Return the abstract type or constant of a parameter."""
    if parameter.kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        raise ExportError(
            f"{where}: *{parameter.name} cannot be exported; an entry point has a fixed number of "
            "arguments. Take a list, tuple or dict of abstract types instead",
            location=location,
        )
    default = parameter.default
    known = (AbstractTypedef, *_SPECS)
    if default is inspect.Parameter.empty and isinstance(parameter.annotation, known):
        default = parameter.annotation
    if default is inspect.Parameter.empty:
        raise ExportError(
            f"{where}: argument {parameter.name!r} has no default; give its abstract type, as in "
            f"{parameter.name}=AbstractTensor(2, None). A helper that is not exported has a name "
            "that starts with _",
            location=location,
        )
    try:
        tree, leaves = pytrees.describe(
            default, lambda value: isinstance(value, (AbstractIntrinsic, *_SPECS))
        )
    except SignatureError as error:
        raise ExportError(
            f"{where}: argument {parameter.name!r}: {error}", location=location
        ) from None
    paths = pytrees.leaf_paths(tree, parameter.name)
    for index, leaf in enumerate(leaves):
        if isinstance(leaf, _SPECS):
            leaves[index] = from_spec(leaf, paths[index])
        else:
            _check_leaf(where, paths[index], leaf, location)
    return pytrees.unflatten(tree, leaves)


def _check_leaf(where: str, path: str, leaf: Any, location: SourceLocation) -> None:
    if isinstance(leaf, (AbstractIntrinsic, *_CONSTANTS)):
        return
    if isinstance(leaf, type) and issubclass(leaf, AbstractTypedef):
        problem = f"is the class {leaf.__name__}; write {leaf.__name__}(...)"
    elif isinstance(leaf, torch.Tensor):
        problem = "is a tensor; give its abstract type, as abstractify(tensor) does"
    else:
        problem = f"is a {type(leaf).__name__}; give an abstract type, a number, text or None"
    raise ExportError(f"{where}: the default of {path} {problem}", location=location)
