"""Which server serves: found by asking all of them, remembered until it fails, shared by all threads of a client."""

from __future__ import annotations

import math
import threading
from time import monotonic

from sockpq.addresses import Address
from sockpq.commands import CLUSTER_LEADER, INTERCONNECT
from sockpq.retry import Lost
from sockpq.survey import ask_all, choose_leader, claims_to_serve

DOUBT_S = 0.3           # so long the others have for telling whether one of them has taken over
DOUBT_AGAIN_S = 0.15    # an answer to that question counts so long for all threads
STRAGGLER_S = 0.1       # how long the answers of slower servers are waited for, doubled with each failed attempt


class Finder:
    """Knows the serving leader, or finds it. Thread-safe; while one thread asks, the others wait for its result."""

    def __init__(self, addresses: tuple[Address, ...], timeout: float) -> None:
        """`timeout`: seconds a server has for connecting and answering."""
        self._addresses = addresses
        self._timeout = timeout
        self._lock = threading.Lock()
        self._leader: Address | None = None
        self._doubting = threading.Lock()
        self._doubted: dict[Address, tuple[float, bool]] = {}   # when last, and whether another claimed to serve

    def leader(self, deadline: float, attempts: int) -> Address:
        """The server to send to. `deadline`: on the monotonic clock; `attempts`: how often this call failed already.

        Raises NoLeader, or Lost when another thread's survey did not end in time: nothing was executed.
        """
        if self._leader is not None:        # without the lock: a reference is read in one piece
            return self._leader
        if not self._lock.acquire(timeout=max(deadline - monotonic(), 0)):
            raise Lost("no server was found in time", sent=False)
        try:
            if self._leader is None:        # no other thread has found it meanwhile
                self._leader = self._survey(deadline, attempts)
            return self._leader
        finally:
            self._lock.release()

    def failed(self, address: Address) -> None:
        """This server does not serve, or cannot be reached: ask again before the next command."""
        with self._lock:
            if self._leader == address:
                self._leader = None

    def taken_over(self, address: Address) -> bool:
        """Does another server than `address` claim to serve? Then it is the one to send to from now on."""
        with self._doubting:        # many threads wait for one server: one of them asks
            asked_at, taken = self._doubted.get(address, (-math.inf, False))
            if monotonic() - asked_at > DOUBT_AGAIN_S:
                claimer = self._ask_others(address)
                taken = claimer is not None
                self._doubted[address] = monotonic(), taken
                if claimer:
                    with self._lock:
                        self._leader = claimer
        return taken

    def _ask_others(self, address: Address) -> Address | None:
        """Which other server claims to serve, if any?"""
        others = [other for other in self._addresses if other != address]
        responses = ask_all(others, [INTERCONNECT, CLUSTER_LEADER], DOUBT_S, STRAGGLER_S)
        return next((other for other, response in responses.items() if claims_to_serve(response)), None)

    def _survey(self, deadline: float, attempts: int) -> Address:
        """Ask all servers. A single one is not asked: the command itself will tell."""
        if len(self._addresses) == 1:
            return self._addresses[0]
        timeout = min(self._timeout, max(deadline - monotonic(), 0.01))
        straggler = min(STRAGGLER_S * 2**attempts, timeout)
        return choose_leader(ask_all(self._addresses, [INTERCONNECT], timeout, straggler))
