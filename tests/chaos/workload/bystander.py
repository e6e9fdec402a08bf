"""A client that waits at a leader which is then cut off, and measures how long it gets no answer."""

from __future__ import annotations

import threading
import time

from tests.chaos.machines.alterable import AlterableCluster
from tests.wire import Broken, Wire

PATIENCE_S = 15.0


class Bystander:
    """Blocked in GETB at the node that leads when it is made."""

    def __init__(self, cluster: AlterableCluster) -> None:
        self._wire = Wire(cluster.server(cluster.wait_for_leader()), PATIENCE_S)
        self._wire.send("GETB nobody.puts.here")
        self._ended_s: float | None = None
        self._begun_s = time.monotonic()
        self._thread = threading.Thread(target=self._wait, name="bystander", daemon=True)

    def watch(self) -> None:
        """Start the measurement: the leader has been cut off."""
        self._begun_s = time.monotonic()
        self._thread.start()

    def close(self) -> None:
        """End the connection."""
        self._wire.close()

    def silence_s(self) -> float | None:
        """Return the seconds until an answer, or the end of the connection; None when there was neither."""
        self._thread.join(PATIENCE_S)
        return None if self._ended_s is None else max(self._ended_s - self._begun_s, 0.0)

    def _wait(self) -> None:
        try:
            self._wire.line()
        except Broken as broken:
            if str(broken) == "silent":
                return
        self._ended_s = time.monotonic()
