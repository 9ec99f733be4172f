"""The Ray executor: jobs on a cluster, or on a local Ray that ends with the build."""

from __future__ import annotations

import logging
import os
from concurrent.futures import Future
from typing import Any

from pelton.runtime.errors import DeviceError, MissingDependencyError

from .matrix import Job
from .work import Outcome, perform

_LOG = logging.getLogger("pelton")


class RayExecutor:
    """Jobs as tasks of Ray, one processor each.

    On a cluster, all machines need the packages that this one has, and the folders of the job file
    and of the results under the same paths.

    Args:
        count: How many processors a Ray of this machine has.
        address: The cluster; None: start a Ray on this machine.

    Raises:
        MissingDependencyError: Ray is not installed.
        DeviceError: There is no cluster at the address.
    """

    def __init__(self, count: int, address: str | None = None) -> None:
        self._ray = _import_ray()
        local = {"num_cpus": count, "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        quiet = {"log_to_driver": False, "logging_level": "error"}
        try:
            self._ray.init(address or "local", **quiet, **({} if address else local))
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise DeviceError(f"cannot reach Ray at {address or 'local'}: {error}") from error
        self._perform = self._ray.remote(max_retries=0, num_cpus=1)(perform)
        self._running: dict[Future[Outcome], Any] = {}

    def submit(self, job: Job) -> Future[Outcome]:
        """Start a job as soon as a processor is free."""
        reference = self._perform.remote(job)
        future: Future[Outcome] = reference.future()
        self._running[future] = reference
        future.add_done_callback(lambda done: self._running.pop(done, None))
        return future

    def close(self) -> None:
        """Interrupt what still runs, and leave Ray; one that was started here ends."""
        for reference in list(self._running.values()):
            try:
                self._ray.cancel(reference)
            except Exception as error:  # Ray may have ended; it is shut down in any case
                _LOG.debug("a job could not be cancelled: %s", error)
        self._ray.shutdown()


def _import_ray() -> Any:
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # a Ray started here reports nothing
    try:
        import ray
    except ImportError as error:
        raise MissingDependencyError(
            "--executor ray needs Ray, which is not installed: pip install 'pelton[ray]'"
        ) from error
    return ray
