"""Declarations of globals: class attributes that give a module state, weights and constants."""

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


def _attributes(given: GlobalAttributes | None, *options: Any) -> GlobalAttributes:
    """Return the attributes that were given, or those of the options in their order.

    Raises:
        ExportError: The options contradict each other; has the user's line.
    """
    try:
        return given if given is not None else GlobalAttributes(*options)
    except ExportError as error:
        raise ExportError(str(error), location=user_location()) from None


class export_global(GlobalsDef, Abstractifiable):
    """Declares one global.

    Args:
        value: Its initial value, a tensor or number; or an abstract type, which starts as zero.
        name: The end of its symbol, `_<attribute>.<name>`.
        mutable: Whether procedures may store to it; its value then persists between calls.
        external: Whether its value comes from an archive at load; None: as the tensor's
            `ExternalTensorTrait` says.
        external_scope: Scope of the archive; None: the trait's, else `model`.
        name_mapper: Maps the name `<attribute>.<name>` to the archive's; None: the same name.
        noinline: Whether the compiler must not fold the value into the code.
        uninitialized: Leaves the initial value undefined.
        attrs: All of these options in one object, instead.

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
        source = (external, external_scope, name_mapper)
        super().__init__(_attributes(attrs, mutable, *source, noinline, uninitialized))
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
    """Declares a tree of globals, each named by its path in the tree.

    Args:
        tree: Nested dicts, lists and tuples of tensors, numbers and abstract types.
        mutable: As for `export_global`, and so the options below.
        external: Whether the values come from an archive.
        external_scope: Scope of the archive.
        name_mapper: Maps the name `<attribute>.<path in the tree>` to the archive's.
        noinline: Whether the compiler must not fold the values.
        uninitialized: Leaves the initial values undefined.
        attrs: All of these options in one object, instead.

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
        source = (external, external_scope, name_mapper)
        super().__init__(_attributes(attrs, mutable, *source, noinline, uninitialized))
        self.tree = tree

    def items(self) -> Iterator[tuple[str, Any]]:
        """Yield the path and the value of each leaf."""
        for path, value in tree_flatten_with_path(self.tree)[0]:
            yield ".".join(_path_component(key) for key in path), value

    def schema(self) -> TreeSpec:
        """Return the structure of the tree."""
        return tree_structure(self.tree)

    def abstractify(self) -> Any:
        """Return the tree of abstract types."""
        types = [abstractify_single_value(value) for _, value in self.items()]
        return tree_unflatten(types, self.schema())


class _ModuleTensors(GlobalsDef, TreeAbstractifiable):
    """Tensors of an `nn.Module`, by their names; a tied tensor is one global with several names.

    Args:
        nn_module: The module.
        mutable: As for `export_global`, and so the options below.
        external: Whether the values come from an archive.
        external_scope: Scope of the archive.
        name_mapper: Maps the name `<attribute>.<name in the module>` to the archive's.
        noinline: Whether the compiler must not fold the values.
        uninitialized: Leaves the initial values undefined.
        attrs: All of these options in one object, instead.

    Raises:
        ExportError: The options contradict each other.
    """

    _separate_when_mutable = False

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
        source = (external, external_scope, name_mapper)
        super().__init__(_attributes(attrs, mutable, *source, noinline, uninitialized))
        self._tensors = dict(self._named_tensors(nn_module))
        self._traits = {
            id(self._tensors[key]): trait
            for key, trait in external_tensors(nn_module).items()
            if key in self._tensors
        }

    def _named_tensors(self, nn_module: torch.nn.Module) -> Iterable[tuple[str, torch.Tensor]]:
        raise NotImplementedError(f"{type(self).__name__} declares no tensors")

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

    Takes the module and the options of `export_global` other than `name`.

    Raises:
        ExportError: The options contradict each other.

    Example:
        >>> export_parameters(torch.nn.Linear(2, 3)).abstractify_tree()["bias"]
        AbstractTensor(3, dtype=torch.float32)
    """

    def _named_tensors(self, nn_module: torch.nn.Module) -> Iterable[tuple[str, torch.Tensor]]:
        return nn_module.named_parameters(remove_duplicate=False)


class export_buffers(_ModuleTensors):
    """Declares the buffers of an `nn.Module` as globals: a dict by name for procedures.

    Takes the module and the options of `export_global` other than `name`.

    Raises:
        ExportError: The options contradict each other.

    Example:
        >>> export_buffers(torch.nn.BatchNorm1d(2)).abstractify_tree()["running_mean"]
        AbstractTensor(2, dtype=torch.float32)
    """

    def _named_tensors(self, nn_module: torch.nn.Module) -> Iterable[tuple[str, torch.Tensor]]:
        return nn_module.named_buffers(remove_duplicate=False)


def _path_component(key: Any) -> str:
    """Return one key of a path in a tree as symbols spell it."""
    return str(getattr(key, "key", getattr(key, "idx", getattr(key, "name", key))))
