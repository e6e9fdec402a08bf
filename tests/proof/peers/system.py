"""The interface to a system under test: how its servers are started, and how a client puts, takes and ends jobs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from tests.proof.place import MACHINES

QUEUE = "proof"
LEASE_S = 5.0               # after which a job of a client that does not answer comes again, where there is a lease
CALL_S = 4.0                # that a client waits for an answer


class Server(Struct):
    """A server and its machine."""

    name: str
    address: str                            # its IP address
    disk: Path                              # a folder on its disk
    enter: Sequence[str]                    # in front of a command that is to run on this machine


class Refused(Exception):
    """The command was surely not executed."""


class Lost(Exception):
    """No answer came: nobody knows whether the command was executed. The connection is of no use any more."""


class Taken(Struct):
    """A job that a client has."""

    job: str
    token: Any                              # what `end` needs


class Hand(Protocol):
    """One connection of a client; used by one thread. All calls raise Lost, `put` also Refused."""

    def put(self, job: str) -> None:
        """Put a job; returns when the system has confirmed it."""

    def take(self, wait_s: float) -> Taken | None:
        """Take a job; None when there was none for this time."""

    def end(self, taken: Taken) -> None:
        """End it; returns when that is confirmed, or where it never is, when a later command was answered."""

    def left(self) -> int:
        """Return how many jobs the system says are waiting."""

    def close(self) -> None:
        """Close the connection, whatever its state is."""


class System(ABC):
    """One system with three servers."""

    name: str
    place = MACHINES                            # the folder for the disks of its machines

    @abstractmethod
    def version(self) -> str:
        """Return the version of its servers, as they print it."""

    @abstractmethod
    def prepare(self, server: Server, servers: Sequence[Server]) -> None:
        """Write what the server needs before it is started for the first time."""

    @abstractmethod
    def command(self, server: Server) -> tuple[Sequence[str], Mapping[str, str]]:
        """Return the command that starts it, and its environment."""

    @abstractmethod
    def form(self, servers: Sequence[Server]) -> bool:
        """Make a cluster of the servers and a queue in it, as far as they are; returns whether all is done."""

    @abstractmethod
    def hand(self, server: Server) -> Hand:
        """Connect a client. Raises Lost."""

    @abstractmethod
    def files(self, server: Server) -> Iterable[Path]:
        """Return the files in which the server keeps its jobs."""

    def serves(self, server: Server) -> bool:
        """Return whether a client can put a job by this server."""
        try:
            hand = self.hand(server)
        except Lost:
            return False
        try:
            return self.is_level(hand)
        except (Lost, Refused):
            return False
        finally:
            hand.close()

    @abstractmethod
    def is_level(self, hand: Hand) -> bool:
        """Return whether its server takes part in the cluster."""
