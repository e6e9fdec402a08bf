"""Word to the service manager, after sd_notify(3): the node has started, how it is, that it is alive, that it stops.

systemd names a datagram socket in NOTIFY_SOCKET; where nobody does, nothing is said. With WATCHDOG_USEC it ends a
process it has not heard of for so long. The sign of life comes from the event loop: one that stands still gives none.
"""

from __future__ import annotations

import asyncio
import logging
import socket
import time
from collections.abc import Callable, Mapping

from cluster.api import Cluster

log = logging.getLogger("sockpqd")

BEAT_S = 1.0        # STATUS is at most so old
START_S = 900.0     # what a start may take, as the unit of deploy/ has it


class ServiceManager:
    """The manager's ear. `status` says in a few words how the node is."""

    def __init__(self, environment: Mapping[str, str], status: Callable[[], str]) -> None:
        address = environment.get("NOTIFY_SOCKET", "")
        self._address = f"\0{address[1:]}" if address.startswith("@") else address      # @: no file, an abstract name
        self._watchdog_s = int(environment.get("WATCHDOG_USEC") or 0) / 1e6             # 0: nobody waits for a sign
        self._status = status
        self._started = False
        self._told = ""

    def waiting(self, pause_s: float) -> None:
        """The node waits for so long before it starts: the start has its time beside that."""
        self._tell(f"STATUS={self._status()}\nEXTEND_TIMEOUT_USEC={int((pause_s + START_S) * 1e6)}")

    def started(self) -> None:
        """Clients can connect. (Not: it serves. The first of three nodes cannot serve before the second is there.)"""
        self._started = True
        self._tell("READY=1")
        if self._address:
            self._beat()

    def reload(self, do: Callable[[], None]) -> None:
        """Do what SIGHUP asks for; the manager is told when it begins and when it is done."""
        if not self._started:       # READY=1 would come too early
            do()
            return
        self._tell(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")
        do()
        self._tell("READY=1")

    def stopping(self) -> None:
        """The node is on its way out; signs of life go on until it is gone."""
        self._tell("STOPPING=1")

    def _beat(self) -> None:
        words = ["WATCHDOG=1"] if self._watchdog_s else []
        if (status := self._status()) != self._told:
            self._told = status
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
            log.warning("the service manager was not told %s: %s", words.partition("\n")[0], error)


def describe(cluster: Cluster) -> str:
    """How the node is, for `systemctl status`: "leader, term 3"."""
    own = next((node for node in cluster.status() if node.name == cluster.name), None)
    if own is None:
        return "not a member of the cluster"
    if own.role == "LEADER":
        return f"leader, term {own.term}" if cluster.serving else f"leader, term {own.term}, does not serve"
    return f"{own.role.lower()}, term {own.term}, leader: {cluster.leader() or 'none'}"
