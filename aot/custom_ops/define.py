"""Definition of custom operators: checked, known to torch, and added to the table."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import torch
from torch.fx.node import has_side_effect

from ..compat.operators import (
    CustomOpDef,
    FunctionSchema,
    OpOverload,
    overload_of,
    parse_schema,
    schema_of,
)
from ..compat.symbolic import check
from ..lowering.custom.operator import Body, CustomOp, add, bind_arguments, find, tensor_arguments
from ..lowering.custom.shapes import ShapePattern
from ..spec.errors import ExportError
from ..spec.locations import user_location

Dtype: TypeAlias = torch.dtype | str
"""An element type, or the name of a tensor argument that has it."""

_OF_TEXTS = re.compile(r"result\d*|iterators")


def custom_op(
    schema: str,
    *,
    shapes: str,
    body: Body,
    dtypes: Sequence[Dtype] | Dtype = (),
    eager: Callable[..., Any] | None = None,
) -> CustomOpDef:
    """Define an operator by its body in MLIR, for eager, `torch.export` and procedures.

    A text body is the inside of a function that ends in `return`. Its arguments are called as in
    the schema, after a `%`: tensors, `i64` for int, `f64` for float, `i1` for bool. A size `n` of
    `shapes` is `%size.n`, of type index; those of `...` are `%size.d0`, `%size.d1`, …. All sizes
    are dynamic in it, so that one text serves all shapes.

    Filled in are, for a tensor argument `x` and likewise for `result` (or `result0`, `result1`, …):
    `$x` its type, `${x.element}` its element type, `${x.rank}`, `${x.sizes}` the values of its
    sizes, `${x.map}` its indexing map in loops over all sizes, those of the results first; for
    other arguments `$n` their constant value; and `$iterators`, the kinds of those loops.

    A function as body gets a `BodyBuilder` and the arguments by name, tensors and numbers that only
    a run tells as MLIR values, others as Python values. It emits operations and returns the value
    of each result.

    Args:
        schema: Name and schema in torch's form: `demo::gated(Tensor x, float slope) -> Tensor`.
            Results are tensors; arguments are not written to. An integer that differs between runs
            of one program is a `SymInt`.
        shapes: The shapes of the tensor arguments and results by named sizes, which are checked:
            `m k, k n -> m n`; `... d, d -> ... d` for any number of leading dimensions.
        body: The text, or the function.
        dtypes: The element type of each result; default: that of the first tensor argument.
        eager: What it does outside of exported programs; default: the body, compiled for the
            processor when it is first called with arguments of such types.

    Returns:
        The operator, to be called, and to be given a gradient by its `register_autograd`.

    Raises:
        ExportError: Schema and shapes do not fit, or something else cannot be a custom operator.

    Example:
        >>> gated = custom_op(
        ...     "docs::gated(Tensor x, Tensor gate) -> Tensor",
        ...     shapes="..., ... -> ...",
        ...     body='''
        ...         %empty = tensor.empty(${x.sizes}) : $result
        ...         %0 = linalg.generic {
        ...             indexing_maps = [${x.map}, ${gate.map}, ${result.map}],
        ...             iterator_types = $iterators
        ...         } ins(%x, %gate : $x, $gate) outs(%empty : $result) {
        ...         ^bb0(%a: ${x.element}, %b: ${gate.element}, %out: ${result.element}):
        ...           %c = math.tanh %b : ${x.element}
        ...           %d = arith.mulf %a, %c : ${x.element}
        ...           linalg.yield %d : ${x.element}
        ...         } -> $result
        ...         return %0 : $result
        ...     ''',
        ...     eager=lambda x, gate: x * torch.tanh(gate),
        ... )
        >>> out = aot.export(gated, args=(torch.ones(2, 3), torch.ones(2, 3)))
        >>> "linalg.generic" in str(out.mlir_module)
        True
    """
    name, signature = _parts(schema)
    pattern = ShapePattern.parse(shapes)
    wanted = [dtypes] if isinstance(dtypes, (str, torch.dtype)) else list(dtypes)
    _check_schema(name, signature, pattern, wanted)
    defined = torch.library.custom_op(
        name,
        eager if eager is not None else _Eager(name),
        mutates_args=(),
        device_types=None if eager is not None else "cpu",
        schema=signature,
    )
    overload = overload_of(defined)
    defined.register_fake(_Fake(schema_of(overload), pattern, wanted))
    _register(overload, body, pattern)
    return defined


def register_body(op: CustomOpDef | OpOverload, body: Body, *, shapes: str | None = None) -> None:
    """Give a body to an operator that was defined with `torch.library`.

    Args:
        op: What `torch.library.custom_op` returned, or an overload such as
            `torch.ops.demo.gated.default`.
        body: As for `custom_op`.
        shapes: As for `custom_op`; without, no sizes are named, and only those sizes of the
            results are checked that are numbers.

    Raises:
        ExportError: `op` is no custom operator, has results other than tensors, or writes to its
            arguments.

    Example:
        >>> @torch.library.custom_op("docs::twice", mutates_args=())
        ... def twice(x: torch.Tensor) -> torch.Tensor:
        ...     return x + x
        >>> register_body(twice, "%0 = arith.addf %x, %x : $x  return %0 : $x", shapes="n -> n")
    """
    overload = overload_of(op) if isinstance(op, CustomOpDef) else op
    if not isinstance(overload, OpOverload) or overload.namespace in ("aten", "prim", "prims"):
        raise ExportError(
            f"{op!r} is no custom operator; pass what torch.library.custom_op returned, or one "
            "overload, such as torch.ops.demo.gated.default"
        )
    pattern = None if shapes is None else ShapePattern.parse(shapes)
    schema = schema_of(overload)
    _check_schema(schema.name, str(schema).removeprefix(schema.name), pattern, ())
    _register(overload, body, pattern)


def _register(overload: OpOverload, body: Body, pattern: ShapePattern | None) -> None:
    schema = schema_of(overload)
    if not schema.returns:
        has_side_effect(overload)  # else what it is there for would be removed as unused
    text = textwrap.dedent(body).strip("\n") if isinstance(body, str) else body
    add(CustomOp(schema.name, schema, text, pattern, user_location()))


def _parts(schema: str) -> tuple[str, str]:
    name, bracket, rest = schema.strip().partition("(")
    if not bracket or name.count("::") != 1:
        raise ExportError(
            f"the schema {schema!r} must be of the form namespace::name(Tensor x) -> Tensor"
        )
    return name, bracket + rest


def _check_schema(
    name: str, signature: str, pattern: ShapePattern | None, dtypes: Sequence[Dtype]
) -> None:
    try:
        schema = parse_schema(name + signature)
    except RuntimeError as error:
        raise ExportError(f"custom operator {name}: {' '.join(str(error).split())}") from error
    tensors = tensor_arguments(schema)
    others = [str(r.type) for r in schema.returns if str(r.type) != "Tensor"]
    problem = None
    if schema.is_mutable:
        problem = "it writes to its arguments; return the new values instead"
    elif any("List[Tensor]" in str(a.type) for a in schema.arguments):
        problem = "arguments cannot be lists of tensors"
    elif taken := [a.name for a in schema.arguments if _OF_TEXTS.fullmatch(a.name)]:
        problem = f"no argument can be called {taken[0]!r}, which means something else in bodies"
    elif others:
        problem = f"results are tensors, not {others[0]}"
    elif dtypes and len(dtypes) != len(schema.returns):
        problem = f"{len(dtypes)} dtypes are given for {len(schema.returns)} results"
    elif unknown := [d for d in dtypes if isinstance(d, str) and d not in tensors]:
        problem = f"dtypes names {unknown[0]!r}, which is no tensor argument"
    elif pattern is not None:
        problem = _misfit(schema, tensors, pattern, dtypes)
    if problem is not None:
        raise ExportError(f"custom operator {name}: {problem}", location=user_location())


def _misfit(
    schema: FunctionSchema,
    tensors: Sequence[str],
    pattern: ShapePattern,
    dtypes: Sequence[Dtype],
) -> str | None:
    """Return why shapes do not fit a schema, or None."""
    counts = (len(pattern.arguments), len(pattern.results))
    if counts != (len(tensors), len(schema.returns)):
        return (
            f"the shapes {str(pattern)!r} are for {counts[0]} tensors and {counts[1]} results, the "
            f"schema has {len(tensors)} and {len(schema.returns)}"
        )
    if schema.returns and not tensors and not dtypes:
        return "without a tensor argument, dtypes must say the element types of the results"
    return None


@dataclass(frozen=True)
class _Eager:
    """What an operator without an implementation in torch does in eager.

    torch keeps it until the process ends, and with it all that its module refers to: what runs
    programs is therefore imported when it is called.
    """

    name: str

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        from .eager import run_compiled

        op = find(self.name.replace("::", "."))
        assert op is not None, self.name
        return run_compiled(op, bind_arguments(op.schema, args, kwargs))


@dataclass(frozen=True)
class _Fake:
    """What torch.export runs in place of an operator: it makes results of the right types."""

    schema: FunctionSchema
    shapes: ShapePattern
    dtypes: Sequence[Dtype]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        given = bind_arguments(self.schema, args, kwargs)
        names = tensor_arguments(self.schema)
        tensors = [given[name] for name in names]
        sizes = self.shapes.bind(
            [None if tensor is None else tensor.shape for tensor in tensors],
            names,
            self._require,
        )
        rest = self.shapes.rank_of_rest([None if t is None else t.dim() for t in tensors])
        first = next((tensor for tensor in tensors if tensor is not None), torch.empty(()))
        made = []
        for position, shape in enumerate(self.shapes.results):
            dtype = self.dtypes[position] if self.dtypes else first.dtype
            result = [int(n) if n.isdigit() else sizes[n] for n in shape.names(rest)]
            dtype = given[dtype].dtype if isinstance(dtype, str) else dtype
            made.append(first.new_empty(result, dtype=dtype))
        return made[0] if len(made) == 1 else tuple(made) or None

    def _require(self, size: Any, expected: Any, what: str) -> None:
        problem = f"{self.schema.name}: {what}, {expected}: {size}"
        check(size == expected, lambda: problem)
