"""Additional clients during a load, with a judge of their own."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from tests.chaos.machines.alterable import AlterableCluster


class Beside(Protocol):
    """Clients that work from `begin` until `finish`, and leave no job. `close` is always called."""

    def begin(self, cluster: AlterableCluster, seed: int) -> None:
        """Begin to work; the cluster serves by then."""

    def finish(self) -> Iterable[str]:
        """Begin nothing new, finish commands in flight, and return violations, in sentences; the cluster is whole."""

    def close(self) -> None:
        """End all processes and threads, also when it has not begun."""

    def report(self) -> str:
        """Return what was done, in one line."""
