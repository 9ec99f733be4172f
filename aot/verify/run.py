"""The run of an artifact and a reference side by side."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch

from pelton.runtime.call.pytrees import leaf_paths
from pelton.runtime.call.signature import Signature
from pelton.runtime.executable import Executable
from pelton.runtime.progress import stage

from ..spec.errors import ExportError, PeltonError
from .difference import Difference, difference
from .integer_ranges import check_paths, integer_ranges
from .options import Numerics
from .reference import Reference, result_leaves
from .report import Comparison, Report
from .sizes import SizeCase, size_cases
from .values import InputMaker, InputPattern, fillings


@dataclass(frozen=True)
class FailedCall:
    """A call whose results differ: what is needed to make it again.

    Attributes:
        function: The entry point.
        sizes: The dynamic sizes.
        leaves: The inputs.
        state: The state before it.
    """

    function: str
    sizes: SizeCase
    leaves: list[Any]
    state: Mapping[str, torch.Tensor]


@dataclass
class Run:
    """One verification on its way.

    Args:
        executable: The loaded artifact.
        references: What each entry point is compared with.
        options: What to try.

    Attributes:
        comparisons: What was compared so far.
        notes: What was left out, and the ranges of integers.
        failure: The first call whose results differ.
    """

    executable: Executable
    references: Mapping[str, Reference]
    options: Numerics
    comparisons: list[Comparison] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    failure: FailedCall | None = None

    def report(self, artifact: str) -> Report:
        """Compare everything.

        Args:
            artifact: What the artifact is called in the report.

        Raises:
            ExportError: The options do not fit the program, or nothing could be compared.
        """
        signatures = {name: self.executable.functions[name].signature for name in self.references}
        check_paths(signatures, self.options)
        initial = {name: reference.get_state() for name, reference in self.references.items()}
        try:
            for name, reference in self.references.items():
                with stage(f"verifying {name}"):
                    self._function(signatures[name], reference)
        finally:
            for name, reference in self.references.items():
                reference.set_state(initial[name])
            if self.executable.state:
                self.executable.reset_state()
        names = dict.fromkeys(reference.name for reference in self.references.values())
        return Report(artifact, " and ".join(names), tuple(self.comparisons), tuple(self.notes))

    def _function(self, signature: Signature, reference: Reference) -> None:
        cases, notes = size_cases(signature, self.options.sizes)
        self.notes += notes
        self._start(reference)
        usual = cases[min(1, len(cases) - 1)].values if cases else {}
        ranges, notes = integer_ranges(signature, reference, usual, self.options)
        self.notes += notes
        maker = InputMaker(signature, ranges)
        random = self._random_results(maker, reference, usual)
        compared = 0
        for case in cases:
            size = maker.size_bytes(case.values)
            if size > self.options.memory_limit_bytes:
                self._leave_out(signature, case, f"its inputs take {size / 2**20:.0f} MiB")
                continue
            compared += self._case(signature, reference, maker, case, random)
        if not compared:
            raise _nothing_compared(signature, self.notes)

    def _case(
        self,
        signature: Signature,
        reference: Reference,
        maker: InputMaker,
        case: SizeCase,
        random: set[int],
    ) -> int:
        """Compare the calls at some sizes, state going from one to the next; return how many."""
        self._start(reference)
        compared = 0
        for filling in fillings(self.options):
            leaves = maker.make(case.values, filling)
            before = reference.get_state()
            try:
                wanted = reference(leaves)
            except Exception as error:  # outside of what the program takes
                reason = " ".join(f"{type(error).__name__}: {error}".split())[:160]
                self._leave_out(signature, case, f"{reference.name} refuses it ({reason})", filling)
                reference.set_state(before)
                continue
            found = [*self._call(signature, reference, leaves, wanted, random)]
            self.comparisons += [Comparison(signature.name, case, filling, *f) for f in found]
            failed = any(apart.problem for _, apart in found)
            if failed and self.failure is None:
                self.failure = FailedCall(signature.name, case, leaves, before)
            compared += 1
        return compared

    def _call(
        self,
        signature: Signature,
        reference: Reference,
        leaves: list[Any],
        wanted: list[Any],
        random: set[int],
    ) -> list[tuple[str, Difference]]:
        args, kwargs = signature.call_form(leaves)
        try:
            result = self.executable.functions[signature.name](*args, **kwargs)
            got = result_leaves(signature, result)
        except PeltonError as error:
            return [("result", Difference(float("inf"), float("inf"), f"fails: {error}"[:300]))]
        paths = leaf_paths(signature.result_tree, "result")
        pairs = zip(wanted, got, strict=True)
        found = [
            (paths[index], difference(want, have, self.options))
            for index, (want, have) in enumerate(pairs)
            if index not in random
        ]
        now = reference.get_state()
        for name in self._shared_state(reference):
            have = torch.as_tensor(self.executable.state[name])
            found.append((f"state {name}", difference(now[name], have, self.options)))
        return found

    def _start(self, reference: Reference) -> None:
        """Put the state that the artifact has at first into both."""
        if self.executable.state:
            self.executable.reset_state()
        shared = self._shared_state(reference)
        reference.set_state({name: self.executable.state[name] for name in shared})

    def _shared_state(self, reference: Reference) -> list[str]:
        return [name for name in self.executable.state if name in reference.state_names]

    def _random_results(
        self, maker: InputMaker, reference: Reference, sizes: Mapping[str, int]
    ) -> set[int]:
        """Return which results differ between two equal runs of the reference."""
        leaves = maker.make(sizes, InputPattern("random"))
        before = reference.get_state()
        try:
            first = reference(leaves)
            reference.set_state(before)
            second = reference(leaves)
        except Exception as error:  # the comparison that follows reports it with its case
            self.notes.append(f"not checked for random results: the reference failed: {error}")
            return set()
        finally:
            reference.set_state(before)
        pairs = enumerate(zip(first, second, strict=True))
        found = {i for i, pair in pairs if difference(*pair, self.options).problem}
        if found:
            self.notes.append(f"results {sorted(found)} are random and were not compared")
        return found

    def _leave_out(
        self, signature: Signature, case: SizeCase, reason: str, filling: InputPattern | None = None
    ) -> None:
        inputs = f", inputs {filling}" if filling else ""
        self.notes.append(f"{signature.name}() at {case}{inputs} left out: {reason}")


def _nothing_compared(signature: Signature, notes: list[str]) -> PeltonError:
    reasons = "; ".join(notes[-3:])
    return ExportError(
        f"{signature.name}(): nothing could be compared: {reasons}; state sizes and ranges of "
        "integers that the program takes: aot.Numerics(sizes=[...], integers={...})"
    )
