"""Events from one server after another: if one dies, the next continues after the last event received."""

from __future__ import annotations

import logging
import math
import os
import random
from collections import deque
from contextlib import suppress

from sockpq._engine.attempt import TINY_S
from sockpq._engine.connection import Connection
from sockpq._engine.pool import Slot
from sockpq._engine.retry import ForeignServer, Lost
from sockpq._process import check_own, is_inherited
from sockpq._protocol.addresses import Address
from sockpq._protocol.commands.events import Began, Gap, Heard, subscribe
from sockpq._protocol.job_ids import TAG_SHIFT
from sockpq._routing.router import Router
from sockpq.errors import (
    BadArguments,
    Busy,
    ClientClosed,
    Elsewhere,
    EventsLost,
    ForeignCluster,
    NotSupported,
    ProtocolError,
    Refused,
    SockpqError,
    Unavailable,
    Untrusted,
)
from sockpq.model import Event

LOG = logging.getLogger("sockpq")

BEAT_S = 5.0            # a server that has sent nothing for this long is asked whether it lives
PAUSE_S = 0.05, 1.0     # between two rounds over all servers: first, and at most
TOO_OLD = "409 Too Old"


class EventStream:
    """The events of one loop. For one thread or task at a time."""

    def __init__(
        self, router: Router, words: str, names: tuple[str, ...] | None, after: int | None, wait: float | None,
        timeout: float,
    ) -> None:
        """`words`: types and names; `names`: the names only, None for all; `after`: the number of the last known event.

        `wait`: the seconds without an event after which the loop ends; `timeout`: how many seconds to search for a
        server.
        """
        self.position = after               # events up to this number were heard, or came before
        self._router = router
        self._executor = router.first
        self._tag = 0                       # of the jobs of that cluster
        self._names = names
        self._process = os.getpid()
        self._words = words
        self._wait = math.inf if wait is None else wait
        self._timeout = timeout
        self._network = router.network
        self._slot: Slot | None = None
        self._heard: list[Heard] = []       # filled by the reader of the connection
        self._came: deque[Event | Gap] = deque()
        self._heard_at = 0.0                # when the server last sent something
        self._asked_at: float | None = None     # when it was asked whether it lives, and has not answered
        self._stopped = False

    async def next(self) -> Event | None:
        """Return the next event; None if there was none for `wait` seconds.

        Raises EventsLost, Unavailable, Inherited.
        """
        check_own(self._process, "this loop over events")
        until = self._network.now() + self._wait
        while not self._came:
            try:
                if self._stopped:
                    self.leave()
                    return None
                connection = self._slot.connection if self._slot else None
                if connection is None:
                    await self._connect()
                    continue
                if not await self._receive(connection, until):
                    self.leave()
                    return None
            except (Lost, ProtocolError) as failure:
                if not self._stopped:       # else this side has ended the connection
                    LOG.info("events: %s", failure)
                self._drop()
            except BaseException:
                self.leave()
                raise
        one = self._came.popleft()
        if isinstance(one, Gap):
            raise EventsLost(one.first, one.last)
        return one

    async def open(self) -> None:
        """Subscribe now. Raises Unavailable, Inherited, and the error with which servers refuse the subscription."""
        check_own(self._process, "this loop over events")
        if self._slot is None or self._slot.connection is None:
            try:
                await self._connect()
            except BaseException:
                self.leave()
                raise

    def stop(self) -> None:
        """Let `next` return None from now on. Callable from any thread."""
        self._stopped = True
        connection = self._slot.connection if self._slot else None
        if connection:
            connection.abort()

    def leave(self) -> None:
        """Close the connection. `next` continues after the last event."""
        slot, self._slot = self._slot, None
        if slot:
            slot.drop_connection()
            if not is_inherited(self._process):
                self._executor.give_back(slot)

    def __del__(self) -> None:
        """Give back the connection of a loop that was abandoned."""
        with suppress(Exception):
            self.leave()

    # ---- inside

    def _drop(self) -> None:
        if self._slot:
            self._slot.drop_connection()

    async def _connect(self) -> None:
        """Subscribe at any server; raises Unavailable, EventsLost, or the error with which servers refuse it."""
        until = self._network.now() + self._timeout
        pause = PAUSE_S[0]
        while True:
            try:
                await self._choose_cluster()
            except Elsewhere:               # the names have no owner now
                if self._network.now() + pause >= until:
                    raise
                await self._network.sleep(pause)
                continue
            addresses = await self._executor.event_servers(until)
            random.shuffle(addresses)
            addresses.sort(key=lambda address: address == self._executor.leader)      # spare the leader
            failure: Exception | None = None
            refused: list[Address] = []
            foreign: list[str] = []
            for address in addresses:
                try:
                    await self._subscribe(address, self.position, until)
                    return
                except Refused as error:
                    if str(error) != TOO_OLD:
                        raise
                    refused.append(address)
                except BadArguments as error:       # of a version, or an original sockPQd, that does not know it
                    raise NotSupported(f"{address}: this server does not tell events") from error
                except (Lost, ProtocolError, Busy, Untrusted) as error:
                    failure = error
                    foreign += [str(error)] if isinstance(error, ForeignServer) else []
                self._drop()
            if refused:
                await self._give_up(refused, until)
                return
            if len(foreign) == len(addresses):
                raise ForeignCluster("; ".join(foreign))
            if self._network.closed:
                raise ClientClosed("the client was closed")
            if self._stopped:
                return
            if self._network.now() + pause >= until:
                text = f"no server tells events: {'; '.join(foreign) or failure}"
                raise (ForeignCluster(text) if foreign else Unavailable(text)) from failure
            await self._network.sleep(pause)
            pause = min(2 * pause, PAUSE_S[1])

    async def _choose_cluster(self) -> None:
        """Take the cluster of the names; raises CrossCluster if they are of several."""
        route = await self._router.of_events(self._words, self._names)
        if route.executor is not self._executor:
            self.leave()
            self._executor, self.position = route.executor, None        # events have other numbers there
        self._tag = route.tag

    async def _give_up(self, refused: list[Address], until: float) -> None:
        """Report the events since the last one as lost, as no server has them, and continue after them."""
        for address in refused:
            with suppress(Lost, ProtocolError, Busy):
                before, self.position = self.position or 0, None
                try:
                    await self._subscribe(address, None, until)
                except BaseException:
                    self.position = before
                    raise
                self._came.appendleft(Gap(before + 1, max(self.position or 0, before + 1)))
                return

    async def _subscribe(self, address: Address, after: int | None, until: float) -> None:
        """Connect to this server and subscribe; raises Lost, ProtocolError, and the refusal of the server."""
        if self._slot is None:
            self._slot = self._executor.take_slot()
        self._heard = []
        self._asked_at = None
        connection = await self._executor.connect_to(self._slot, address, until)
        patience = max(min(self._executor.limits.server_timeout, until - self._network.now()), TINY_S)
        deadline = self._network.now() + patience
        await connection.enter(patience)
        if connection.leaderless:
            raise Lost(f"{address} has not heard of a leader", sent=False)
        if self._router.identity.map_is_unread:
            raise Lost("the map of clusters is read first", sent=False)
        await self._choose_cluster()        # again, as the map may have been read meanwhile
        if self._slot is None:
            raise Lost("another cluster owns these names", sent=False)
        if not await connection.send(subscribe(self._words, after, self._heard), 0, patience):
            raise Lost(f"{address}: the connection broke while sending", sent=False)
        while not self._heard:
            if self._network.now() >= deadline:
                raise Lost(f"{address}: no answer to SUBSCRIBE", sent=False)
            try:
                await self._take(connection, max(deadline - self._network.now(), TINY_S))
            except TimeoutError:
                continue
        self._heard_at = self._network.now()
        self._sort()

    async def _receive(self, connection: Connection, until: float) -> bool:
        """Receive the next bytes; returns False if there were none until `until`. Raises Lost, ProtocolError."""
        now = self._network.now()
        patience = self._executor.limits.server_timeout
        due = self._heard_at + BEAT_S if self._asked_at is None else self._asked_at + patience
        try:
            await self._take(connection, max(min(due, until) - now, TINY_S))
        except TimeoutError:
            now = self._network.now()
            if now >= until:
                return False
            if now < due:
                return True
            if self._asked_at is not None:
                raise Lost(f"{connection.address}: silent for {now - self._heard_at:.1f} s", sent=False) from None
            with suppress(Elsewhere):
                await self._choose_cluster()
            if self._slot is None:          # they have another owner
                return True
            self._asked_at = now
            await connection.add(f"SUBSCRIBE {self._words}\r\n".encode(), patience)
            return True
        self._heard_at = self._network.now()
        self._sort()
        return True

    async def _take(self, connection: Connection, timeout: float) -> None:
        answers = await connection.receive(timeout)
        for answer in answers:          # the reader has no end: this is a refusal
            error: SockpqError = answer.error or ProtocolError("the subscription has ended")
            raise error

    def _sort(self) -> None:
        """Return the events received so far, in order."""
        heard = self._heard[:]
        self._heard.clear()
        for one in heard:
            position = self.position
            if isinstance(one, Began):
                if position is None or self._asked_at is not None:
                    self.position = one.seq     # everything up to there was delivered before
                self._asked_at = None
            elif isinstance(one, Gap):
                self.position = one.last if position is None else max(position, one.last)
                self._came.append(one)
            elif one.type == "MSG":
                self._came.append(one)          # it has no number of its own
            elif position is None or one.seq > position:
                self.position = one.seq
                tagged = one.id is not None and self._tag << TAG_SHIFT | one.id
                self._came.append(one._replace(id=tagged) if self._tag and tagged else one)
