"""Declarations of globals: what a module keeps between calls, written as class attributes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

import torch

from ...capture.parameters.externalize import external_tensors
from ...compat.pytrees import TreeSpec, tree_flatten_with_path, tree_structure, tree_unflatten
from ...ir.builder import GlobalAttributes
from ...spec.errors import ExportError
from ...spec.locations import user_location
from .declaration import GlobalsDef
from .types import Abstractifiable, AbstractTypedef, TreeAbstractifiable, abstractify_single_value


def _attributes(given: GlobalAttributes | None, options: tuple[Any, ...]) -> GlobalAttributes:
    try:
        return given if given is not None else GlobalAttributes(*options)
    except ExportError as error:
        raise ExportError(str(error), location=user_location()) from None


class export_global(GlobalsDef, Abstractifiable):
    """Declares one global.

    Args:
        value: Its initial value, a tensor or number; or an abstract type, which starts as zero.
        name: What its symbol ends with.
        mutable: Whether procedures may store to it; it then keeps its value between calls.
        external: Whether its value comes from an archive at load; None: as the tensor's
            `ExternalTensorTrait` says.
        external_scope: Scope of the archive; None: the trait's, else `model`.
        name_mapper: Maps the name `<attribute>.<name>` to the archive's; None keeps it.
        noinline: Keeps the compiler from folding the value into the code.
        uninitialized: Leaves the initial value undefined.
        attrs: All of these at once, instead.

    Raises:
        ExportError: The options contradict each other.

    Example:
        >>> export_global(torch.zeros(2, 3), mutable=True).abstractify()
        AbstractTensor(2, 3, dtype=torch.float32)
    """

    def __init__(
        self,
        value: Any,
        *,
        name: str = "global",
        mutable: bool = False,
        external: bool | None = None,
        external_scope: str | None = None,
        name_mapper: Callable[[str], str | None] | None = None,
        noinline: bool = False,
        uninitialized: bool | None = None,
        attrs: GlobalAttributes | None = None,
    ) -> None:
        options = (mutable, external, external_scope, name_mapper, noinline, uninitialized)
        super().__init__(_attributes(attrs, options))
        self.value = value
        self.name = name

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield the name and the value."""
        yield self.name, self.value

    def schema(self) -> TreeSpec:
        """Return the structure: a single leaf."""
        return tree_structure(0)

    def abstractify(self) -> AbstractTypedef:
        """Return the abstract type of the value."""
        return abstractify_single_value(self.value)


class export_global_tree(GlobalsDef, Abstractifiable):
    """Declares a tree of globals.

    Args:
        tree: Nested dicts, lists and tuples of tensors, numbers and abstract types.
        mutable: As for `export_global`.
        external: As for `export_global`.
        external_scope: As for `export_global`.
        name_mapper: As for `export_global`; the name is `<attribute>.<path in the tree>`.
        noinline: As for `export_global`.
        uninitialized: As for `export_global`.
        attrs: All of these at once, instead.

    Raises:
        ExportError: The options contradict each other.

    Example:
        >>> declared = export_global_tree({"a": [torch.zeros(2)], "b": torch.ones(3)})
        >>> [name for name, _ in declared.items()]
        ['a.0', 'b']
    """

    def __init__(
        self,
        tree: Any,
        *,
        mutable: bool = False,
        external: bool | None = None,
        external_scope: str | None = None,
        name_mapper: Callable[[str], str | None] | None = None,
        noinline: bool = False,
        uninitialized: bool | None = None,
        attrs: GlobalAttributes | None = None,
    ) -> None:
        options = (mutable, external, external_scope, name_mapper, noinline, uninitialized)
        super().__init__(_attributes(attrs, options))
        self.tree = tree

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield the path and the value of each leaf."""
        for path, value in tree_flatten_with_path(self.tree)[0]:
            yield ".".join(_step(step) for step in path), value

    def schema(self) -> TreeSpec:
        """Return the structure of the tree."""
        return tree_structure(self.tree)

    def abstractify(self) -> Any:
        """Return the tree of abstract types."""
        types = [abstractify_single_value(value) for _, value in self.items()]
        return tree_unflatten(types, self.schema())


class _ModuleTensors(GlobalsDef, TreeAbstractifiable):
    """Tensors of an `nn.Module`, by their names; a tied one is one global under all its names."""

    _own_state = False

    def __init__(
        self,
        nn_module: torch.nn.Module,
        tensors: Iterable[tuple[str, torch.Tensor]],
        attrs: GlobalAttributes,
    ) -> None:
        super().__init__(attrs)
        self._tensors = dict(tensors)
        self._traits = {
            id(self._tensors[key]): trait
            for key, trait in external_tensors(nn_module).items()
            if key in self._tensors
        }

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield the name and the tensor of each global."""
        yield from self._tensors.items()

    def schema(self) -> TreeSpec:
        """Return the structure: a dict by name."""
        return tree_structure(dict.fromkeys(self._tensors, 0))

    def abstractify_tree(self) -> dict[str, AbstractTypedef]:
        """Return the abstract types by name."""
        return {name: abstractify_single_value(tensor) for name, tensor in self.items()}

    def __getitem__(self, name: str) -> torch.Tensor:
        try:
            return self._tensors[name]
        except KeyError:
            known = ", ".join(self._tensors)
            raise KeyError(f"no {name!r}; there are: {known}") from None

    def _attributes_of(self, tensor: torch.Tensor) -> GlobalAttributes:
        trait = self._traits.get(id(tensor))
        if trait is None:
            return self.attrs
        return GlobalAttributes(
            mutable=self.attrs.mutable,
            external=True,
            external_scope=self.attrs.external_scope or trait.external_scope or None,
            name_mapper=lambda _: trait.external_name,
            noinline=self.attrs.noinline,
        )


class export_parameters(_ModuleTensors):
    """Declares the parameters of an `nn.Module` as globals: a dict by name for procedures.

    Args:
        nn_module: The module.
        mutable: As for `export_global`.
        external: As for `export_global`.
        external_scope: As for `export_global`.
        name_mapper: As for `export_global`; the name is `<attribute>.<name of the parameter>`.
        noinline: As for `export_global`.
        uninitialized: As for `export_global`.
        attrs: All of these at once, instead.

    Raises:
        ExportError: The options contradict each other.

    Example:
        >>> export_parameters(torch.nn.Linear(2, 3)).abstractify_tree()["bias"]
        AbstractTensor(3, dtype=torch.float32)
    """

    def __init__(
        self,
        nn_module: torch.nn.Module,
        *,
        mutable: bool = False,
        external: bool | None = None,
        external_scope: str | None = None,
        name_mapper: Callable[[str], str | None] | None = None,
        noinline: bool = False,
        uninitialized: bool | None = None,
        attrs: GlobalAttributes | None = None,
    ) -> None:
        options = (mutable, external, external_scope, name_mapper, noinline, uninitialized)
        tensors = nn_module.named_parameters(remove_duplicate=False)
        super().__init__(nn_module, tensors, _attributes(attrs, options))


class export_buffers(_ModuleTensors):
    """Declares the buffers of an `nn.Module` as globals: a dict by name for procedures.

    Args:
        nn_module: The module.
        mutable: As for `export_global`.
        external: As for `export_global`.
        external_scope: As for `export_global`.
        name_mapper: As for `export_global`; the name is `<attribute>.<name of the buffer>`.
        noinline: As for `export_global`.
        uninitialized: As for `export_global`.
        attrs: All of these at once, instead.

    Raises:
        ExportError: The options contradict each other.

    Example:
        >>> sorted(export_buffers(torch.nn.BatchNorm1d(2), mutable=True).abstractify_tree())
        ['num_batches_tracked', 'running_mean', 'running_var']
    """

    def __init__(
        self,
        nn_module: torch.nn.Module,
        *,
        mutable: bool = False,
        external: bool | None = None,
        external_scope: str | None = None,
        name_mapper: Callable[[str], str | None] | None = None,
        noinline: bool = False,
        uninitialized: bool | None = None,
        attrs: GlobalAttributes | None = None,
    ) -> None:
        options = (mutable, external, external_scope, name_mapper, noinline, uninitialized)
        tensors = nn_module.named_buffers(remove_duplicate=False)
        super().__init__(nn_module, tensors, _attributes(attrs, options))


def _step(step: Any) -> str:
    """Return one step of a path in a tree, as symbols spell it."""
    return str(getattr(step, "key", getattr(step, "idx", getattr(step, "name", step))))
