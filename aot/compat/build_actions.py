"""Actions of `iree.build`, whose extension point has a public name here."""

from __future__ import annotations

from collections.abc import Callable

from iree.build.executor import BuildAction


class RemotableAction(BuildAction):
    """An action that can run in another process."""

    def remotable_thunk(self) -> Callable[[], None]:
        """Return what the action does: a function without arguments that can be pickled."""
        raise NotImplementedError(f"{type(self).__name__} must override remotable_thunk")

    def _remotable_thunk(self) -> Callable[[], None]:
        return self.remotable_thunk()
