"""Notifies the service manager as in sd_notify(3): readiness, status, watchdog keep-alives, and stopping.

systemd passes a datagram socket in NOTIFY_SOCKET; without one, nothing is sent. With WATCHDOG_USEC it kills a process
it has not heard from for that long. The keep-alives come from the event loop, so a stuck loop sends none.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Mapping

from sockpqd.cluster.api import Cluster

log = logging.getLogger("sockpqd")

BEAT_S = 1.0        # maximum age of STATUS
START_S = 900.0     # how long a start can take, as in the unit in deploy/


class ServiceManager:
    """Sends notifications to the service manager. `status` returns the node's state in a few words."""

    def __init__(self, environment: Mapping[str, str], status: Callable[[], str]) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address      # @: an abstract socket
        self._watchdog_s = int(environment.get("WATCHDOG_USEC") or 0) / 1e6             # 0: no watchdog
        self._status = status
        self._started = False
        self._reported = ""

    def waiting(self, pause_s: float) -> None:
        """Announce a pause before the start, and extend the start timeout by it."""
        self._tell(f"STATUS={self._status()}\nEXTEND_TIMEOUT_USEC={int((pause_s + START_S) * 1e6)}")

    def started(self) -> None:
        """Announce that clients can connect. (Not that it serves: the first of three nodes cannot serve on its own.)"""
        self._started = True
        self._tell("READY=1")
        if self._address:
            self._beat()

    def reload(self, do: Callable[[], None]) -> None:
        """Perform a reload for SIGHUP, announcing its beginning and its end."""
        if not self._started:       # READY=1 would be premature
            do()
            return
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
        do()
        self._tell("READY=1")

    def stopping(self) -> None:
        """Announce that the node is stopping; keep-alives continue until it has."""
        self._tell("STOPPING=1")

    def _beat(self) -> None:
        words = ["WATCHDOG=1"] if self._watchdog_s else []
        if (status := self._status()) != self._reported:
            self._reported = status
            words.append(f"STATUS={status}")
        if words:
            self._tell("\n".join(words))
        pause_s = min(BEAT_S, self._watchdog_s / 2) if self._watchdog_s else BEAT_S
        asyncio.get_running_loop().call_later(pause_s, self._beat)

    def _tell(self, words: str) -> None:
        if not self._address:
            return
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK) as manager:
                manager.sendto(words.encode(), self._address)
        except OSError as error:
            log.warning("could not send %s to the service manager: %s", words.partition("\n")[0], error)


def describe(cluster: Cluster) -> str:
    """Describe the node's state for `systemctl status`, like "leader, term 3"."""
    own = next((node for node in cluster.status() if node.name == cluster.name), None)
    if own is None:
        return "not a member of the cluster"
    if own.role == "LEADER":
        return f"leader, term {own.term}" if cluster.serving else f"leader, term {own.term}, does not serve"
    return f"{own.role.lower()}, term {own.term}, leader: {cluster.leader() or 'none'}"
