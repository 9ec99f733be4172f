"""From a module or function to an `ExportedProgram` over flat tensors, and its signature.

The user's function is traced behind an adapter that takes and gives flat tuples: torch.export sees
only tensors and integers, while containers, constants, defaults and None stand in our signature. So
the containers that torch supports are no limit.
"""

from __future__ import annotations

import contextlib
import dataclasses
import itertools
import logging
import re
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import (
    ConstantArgument,
    OutputKind,
    SymBoolArgument,
    SymFloatArgument,
    SymIntArgument,
    TensorArgument,
)

from pelton.runtime.call import pytrees
from pelton.runtime.call.signature import ConstantSpec

from ..compat.dynamo import compile_lock
from ..compat.fake_tensors import storage_key
from ..compat.guards import traced_guards
from ..compat.operators import OpOverload, schema_of
from ..compat.symbolic import backed_size_oblivious
from ..ir.elements import check_tensor
from ..spec.errors import DynamicShapeError, ExportError, PeltonError, UnsupportedOpError
from ..spec.locations import location_of_function, user_location_of, warn_user
from ..spec.meta_tensors import traced_on_cpu
from .arguments import Arguments, flatten_arguments
from .broadcast_sizes import broadcast_sizes, sizes_of_one
from .diagnosis import branches_on_size, explain_failure, is_size_constraint
from .guards import origin_of_guard
from .side_effects import SideEffects, side_effects_undone, version_of
from .slice_sizes import plain_slice_sizes
from .stack_traces import program_lines

_LOG = logging.getLogger("pelton")


class _TracingLock:
    """torch's own lock of compilations, which may be taken again by the thread that has it.

    TorchDynamo holds it when it calls our back end, and takes it within strict exports. With a lock
    of ours beside it, two threads could each hold one and wait for the other.
    """

    def __enter__(self) -> None:
        compile_lock().acquire()

    def __exit__(self, *_: object) -> None:
        compile_lock().release()


TRACING_LOCK = _TracingLock()
"""Held while torch traces: torch.export is not safe to run from several threads at once."""

_HOLDER = "root"
"""Name under which the adapter holds the user's module; removed from parameter names."""


@dataclass
class Capture:
    """A traced program.

    Attributes:
        program: Flat inputs and flat results, mutations functionalised by torch.export.
        arguments: The arguments that it was traced with.
        result_tree: Structure of the result; leaves are indices into `results`.
        results: For each leaf of the result: a constant, or None where the program computes it.
        prefix: What the program's parameter names start with beyond the user's names.
        location: The user's `file:line` of the function, or empty.
        oblivious: Whether it was traced without regard to sizes of 0 and 1.
    """

    program: ExportedProgram
    arguments: Arguments
    result_tree: pytrees.Tree
    results: list[ConstantSpec | None]
    prefix: str
    location: str
    oblivious: bool = True


class _Result:
    """The structure of the last traced result; torch puts attributes of the module itself back."""

    tree: pytrees.Tree = None
    leaves: list[ConstantSpec | None] = []  # noqa: RUF012 - replaced, never changed
    changed_inputs: list[int] = []  # noqa: RUF012 - positions of the inputs changed in place
    oblivious = True
    is_known = False  # whether a trace has found the structure


class _Flat(torch.nn.Module):
    """Adapter from flat tuples to the user's function; holds the module that owns its state."""

    def __init__(
        self,
        function: Callable[..., Any],
        holder: torch.nn.Module | None,
        arguments: Arguments,
        effects: SideEffects | None,
    ) -> None:
        super().__init__()
        if holder is not None:
            self.add_module(_HOLDER, holder)
            self.training = holder.training
        self.function = function
        self._arguments = arguments
        self.effects = effects
        self.result = _Result()

    def undone(self) -> contextlib.AbstractContextManager[None]:
        """Leave the user's objects as they are, within a `with` block that calls the function."""
        return side_effects_undone(self.function, self._modules.get(_HOLDER))

    def forward(self, *leaves: Any) -> tuple[Any, ...]:
        """Call the user's function with its own structure and return the leaves of its result."""
        result = self._call(leaves)
        if torch.compiler.is_dynamo_compiling():  # it can return values, but keeps no attributes
            tree, values = pytrees.describe(result, _is_result_leaf)
            if not self.result.is_known:
                return (*values, tree)
            pairs = zip(values, self.result.leaves, strict=True)
            return tuple(value for value, constant in pairs if constant is None)
        self.result.tree, values = pytrees.describe(result, _is_result_leaf)
        paths = pytrees.leaf_paths(self.result.tree, "result")
        self.result.leaves = [_constant_of(value, paths[i]) for i, value in enumerate(values)]
        pairs = zip(values, self.result.leaves, strict=True)
        self.result.is_known = True
        if self.effects is not None:
            _only_tensors(values, [paths[index] for index in range(len(values))])
        return tuple(value for value, constant in pairs if constant is None)

    def _call(self, leaves: Sequence[Any]) -> Any:
        by_name = self._arguments.rebuild(leaves)
        args, kwargs = self._arguments.call_form(by_name)
        if torch.compiler.is_dynamo_compiling():  # strict mode: versions would be traced as well
            return self.function(*args, **kwargs)
        if self.effects is not None:
            self.effects.start(by_name)
        before = [version_of(leaf) for leaf in leaves]
        result = self.function(*args, **kwargs)
        if self.effects is not None:
            self.effects.check(by_name)
        after = [version_of(leaf) for leaf in leaves]
        self.result.changed_inputs = [i for i, now in enumerate(after) if now != before[i]]
        return result


def _only_tensors(values: Sequence[Any], paths: Sequence[str]) -> None:
    """Refuse a result that is not made of tensors, and one without any."""
    others = [
        f"{path} is {'an int of a size' if isinstance(value, torch.SymInt) else repr(value)[:60]}"
        for path, value in zip(paths, values, strict=True)
        if not isinstance(value, torch.Tensor)
    ]
    if others or not values:
        raise ExportError(
            f"a compiled function returns tensors, but {', '.join(others) or 'this returns none'}; "
            "return torch.tensor(value), or use aot.export, which also takes numbers and text"
        )


def _is_result_leaf(value: Any) -> bool:
    return isinstance(value, (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool))


def _constant_of(value: Any, path: str) -> ConstantSpec | None:
    if _is_result_leaf(value):
        return None
    if isinstance(value, (bool, int, float, str)):
        return ConstantSpec(value)
    raise ExportError(
        f"{path} is a {type(value).__name__}, which cannot be a result; return tensors, numbers, "
        "text, None, or lists, tuples, dicts and dataclasses of them"
    )


def capture(
    target: torch.nn.Module | Callable[..., Any],
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any = None,
    *,
    strict: bool = False,
    pure: bool = False,
) -> Capture:
    """Trace a module's `forward`, or a function of tensors.

    Args:
        target: The module or function. It is left as it was.
        args: Positional example arguments and specs.
        kwargs: Keyword example arguments and specs.
        dynamic_shapes: Which sizes are dynamic, as for `torch.export.export`.
        strict: Trace Python bytecode (torch.export's strict mode), slower and more limited.
        pure: Take only specs as inputs, tensors as constants, and refuse side effects and results
            that are no tensors.

    Raises:
        ExportError: The arguments do not fit, or the program cannot be traced.
        DynamicShapeError: A size that was asked to be dynamic would have to be fixed.
    """
    function, holder = _function_and_holder(target)
    arguments = flatten_arguments(function, args, kwargs, dynamic_shapes, only_specs=pure)
    if pure and (args or kwargs) and not arguments.inputs:
        raise ExportError(
            f"{getattr(function, '__qualname__', function)} has no input: give "
            "aot.InputInfo(shape, dtype) for each tensor that changes between calls; plain tensors "
            "are constants"
        )
    flat = _Flat(function, holder, arguments, SideEffects(function, holder) if pure else None)
    captured = _capture(flat, arguments, strict)
    _warn_of_changed_inputs(flat.result, arguments)
    return captured


def capture_call(target: torch.nn.Module | Callable[..., Any], arguments: Arguments) -> Capture:
    """Trace a module's `forward`, or a function, on arguments that are flattened already.

    Args:
        target: The module or function. It is left as it was, and may change its inputs in place.
        arguments: Its arguments.

    Raises:
        ExportError: The program cannot be traced.
        DynamicShapeError: A size that was asked to be dynamic would have to be fixed.
    """
    function, holder = _function_and_holder(target)
    return _capture(_Flat(function, holder, arguments, None), arguments, strict=False)


def _capture(flat: _Flat, arguments: Arguments, strict: bool) -> Capture:
    with TRACING_LOCK, traced_on_cpu(flat):
        program = _trace(flat, arguments, strict)
    result, location = flat.result, str(location_of_function(flat.function) or "")
    return Capture(
        program,
        arguments,
        result.tree,
        result.leaves,
        f"{_HOLDER}.",
        location,
        result.oblivious,
    )


def _function_and_holder(target: Any) -> tuple[Callable[..., Any], torch.nn.Module | None]:
    if isinstance(target, torch.nn.Module):
        return target.forward, target
    owner = getattr(target, "__self__", None)
    return target, owner if isinstance(owner, torch.nn.Module) else None


@contextlib.contextmanager
def tracing_settings(oblivious: bool = True, *, positive: bool = False) -> Iterator[None]:
    """Settings of torch for a trace of ours.

    Operators remember the lines of the program, in whatever function they are (torch keeps those
    of `forward` methods only), and torch's own notices about its internals stay silent.

    Args:
        oblivious: Whether example sizes 0, 1 and range ends are no reason to fix a size.
        positive: Whether it may take sizes for at least 1.
    """
    logger = logging.getLogger("torch")
    level = logger.level
    with (
        backed_size_oblivious(oblivious, positive=positive),
        plain_slice_sizes(),
        traced_guards(origin_of_guard),
        program_lines(_Flat.forward.__code__),
        warnings.catch_warnings(),
    ):
        warnings.filterwarnings("ignore", "`isinstance\\(treespec, LeafSpec", FutureWarning)
        warnings.filterwarnings("ignore", category=FutureWarning, module=r"torch\.")
        warnings.filterwarnings("ignore", category=DeprecationWarning, module=r"torch\.")
        logger.setLevel(logging.ERROR)
        try:
            yield
        finally:
            logger.setLevel(level)


def _trace(flat: _Flat, arguments: Arguments, strict: bool) -> ExportedProgram:
    """Trace with the sizes dynamic that were asked to be.

    A size of 1 that is broadcast to a dynamic one must be fixed. torch does that to sizes of
    `Dim.AUTO`, and so do we, where the program cannot be traced with them or compares them with 1.
    """
    try:
        program = _trace_as_asked(flat, arguments, strict)
    except ExportError:
        if not _fix(sizes_of_one(arguments), arguments):
            raise
        return _trace_as_asked(flat, arguments, strict)
    broadcast = broadcast_sizes(program)
    if not broadcast:
        return program
    if not _fix(broadcast, arguments):
        position, axis = next(iter(broadcast))
        leaf = arguments.inputs[position]
        raise DynamicShapeError(
            f"argument {leaf.path}: dimension {axis} was asked to be dynamic, but its size of 1 is "
            "broadcast to another size; make it a fixed size of 1, or give an example of the full "
            "size",
            location=broadcast[position, axis],
        )
    return _trace_as_asked(flat, arguments, strict)


def _fix(sizes: Iterable[tuple[int, int]], arguments: Arguments) -> bool:
    """Make sizes static, by position of the argument and axis; return whether all may be."""
    inputs, fixed = arguments.inputs, list(sizes)
    if not fixed or any(inputs[position].axes[axis].strict for position, axis in fixed):
        return False
    for position, axis in fixed:
        axes = inputs[position].axes
        axes[axis] = dataclasses.replace(axes[axis], torch=torch.export.Dim.STATIC)
    return True


def _trace_as_asked(flat: _Flat, arguments: Arguments, strict: bool) -> ExportedProgram:
    examples = [leaf.example for leaf in arguments.inputs]
    try:
        return _export(flat, arguments, examples, strict, oblivious=True)
    except PeltonError:
        raise
    except Exception as error:
        # A size without a given minimum is as small as the program allows: at least 1? In branches
        # and loops torch compares layouts, which it states differently for sizes that may be 0.
        try:
            return _export(flat, arguments, examples, strict, oblivious=True, positive=True)
        except Exception as second:
            _LOG.debug("the trace with sizes of at least 1 failed as well: %s", second)
            error = second if is_size_constraint(second) else error
        if is_size_constraint(error):
            # Layouts of size 1 differ from all others, for which torch may add a constraint that
            # changes no value. With larger examples it takes sizes as larger than 1 throughout.
            with flat.undone():
                if branches_on_size(flat, arguments):
                    explain_failure(error, flat, arguments)
            try:
                larger = [leaf.larger_example() for leaf in arguments.inputs]
                program = _export(flat, arguments, larger, strict, oblivious=False)
            except Exception as second:
                _LOG.debug("the trace with larger examples failed as well: %s", second)
                with flat.undone():
                    explain_failure(error, flat, arguments)
            flat.result.oblivious = False
            return program
        raise _trace_error(error, flat) from error


def _export(
    flat: _Flat,
    arguments: Arguments,
    examples: Sequence[Any],
    strict: bool,
    oblivious: bool,
    positive: bool = False,
) -> ExportedProgram:
    specs = tuple(leaf.torch_spec for leaf in arguments.inputs)
    shapes = (specs,) if specs else None

    def traced(strict: bool) -> ExportedProgram:
        with flat.undone():
            return torch.export.export(flat, tuple(examples), dynamic_shapes=shapes, strict=strict)

    with tracing_settings(oblivious, positive=positive):
        if flat.effects is not None:  # it refuses the changes that torch warns of
            warnings.filterwarnings("ignore", "The tensor attributes? .* assigned during export")
        try:
            program = traced(strict=False)
        except Exception as error:
            if not strict or is_size_constraint(error):
                raise
            # Numbers that are read from tensors, as `float(x)`, are values in strict mode only.
            flat.result.is_known = False
            try:
                known = traced(strict=True)
            except Exception as second:
                _LOG.debug("the strict trace failed as well: %s", second)
                raise error from None
            _take_structure(flat.result, known)
        if not strict:
            return program
        try:  # it undoes side effects of a trace: the structure is that of the first
            return traced(strict=True)
        except Exception as error:
            if is_size_constraint(error):
                raise
            text = " ".join(str(error).split())[:600]
            raise ExportError(
                f"the program can be traced, but not strictly: {type(error).__name__}: {text}; "
                "leave strict mode off",
                location=user_location_of(error),
            ) from error


def _take_structure(result: _Result, program: ExportedProgram) -> None:
    """Note the structure of a result, from a program that returns all leaves and their tree."""
    signature, call = program.graph_signature, program.module_call_graph[0].signature
    returned = [
        spec.arg.value if isinstance(spec.arg, ConstantArgument) else spec.arg
        for spec in signature.output_specs
        if spec.kind is OutputKind.USER_OUTPUT
    ]
    assert call is not None
    *values, result.tree = call.out_spec.unflatten(returned)
    result.leaves = [
        None if isinstance(value, _COMPUTED) else _constant_of(value, "a result")
        for value in values
    ]
    written = set(_written_memory(program.graph))
    nodes = {node.name: node.meta.get("val") for node in program.graph.nodes}
    inputs = [nodes[str(name)] for name in signature.user_inputs]
    result.changed_inputs = [
        position
        for position, value in enumerate(inputs)
        if isinstance(value, torch.Tensor) and storage_key(value) in written
    ]
    result.is_known = True


def _written_memory(graph: torch.fx.Graph) -> Iterator[int]:
    """Yield the key of each memory that a graph writes to in place."""
    for node in graph.nodes:
        if node.op != "call_function" or not isinstance(node.target, OpOverload):
            continue
        for place, argument in enumerate(schema_of(node.target).arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                given = (*node.args[place : place + 1], node.kwargs.get(argument.name))
                yield from (storage_key(found.meta["val"]) for found in _nodes_in(given))


def _nodes_in(value: Any) -> list[torch.fx.Node]:
    found: list[torch.fx.Node] = []
    torch.fx.map_arg(value, found.append)
    return found


_COMPUTED = (TensorArgument, SymIntArgument, SymFloatArgument, SymBoolArgument)

_DATA_DEPENDENT = ("GuardOnDataDependentSymNode", "PendingUnbackedSymbolNotFound")


def _trace_error(error: Exception, flat: _Flat) -> ExportError:
    location = user_location_of(error)
    if type(error).__name__ in _DATA_DEPENDENT:
        return ExportError(
            "Python's control flow or a size depends on the value of a tensor, which is not known "
            "at export; use torch.cond, torch.where or torch.while_loop, or torch._check for sizes",
            location=location,
        )
    own = re.split(r"\n\nThe error above occurred|Exception raised from", str(error))[0]
    text = " ".join(own.split())[:800]
    if type(error).__name__ == "UnsupportedFakeTensorException" or "could not find kernel" in text:
        text += "".join(f"; {reason}" for reason in _unusable_tensors(flat))
    if isinstance(error, NotImplementedError):
        return UnsupportedOpError(f"the program cannot be traced: {text}", location=location)
    return ExportError(
        f"the program cannot be traced: {type(error).__name__}: {text}", location=location
    )


def _unusable_tensors(flat: _Flat) -> Iterator[str]:
    """Yield what is wrong with tensors of the user's module that no trace may be able to read."""
    for name, tensor in itertools.chain(flat.named_parameters(), flat.named_buffers()):
        try:
            check_tensor(tensor, name.removeprefix(f"{_HOLDER}."), "register")
        except ExportError as error:
            yield str(error)


def _warn_of_changed_inputs(result: _Result, arguments: Arguments) -> None:
    for position in result.changed_inputs:
        warn_user(
            f"the program changes argument {arguments.inputs[position].path} in place; the "
            "exported function leaves the caller's tensor as it is. Return the changed tensor to "
            "have it"
        )
