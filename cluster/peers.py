"""Connections between nodes.

Each node dials every other at the address in its own configuration and sends only on the connection it dialed; it
receives on the one the peer dialed. A link is up while both stand, and when one ends the other is closed with it, so
that nothing of an old connection is ever taken for news. Whatever is not a message of a known peer ends the connection
with one line in the log.

Large messages leave piece by piece, as the operating system takes them, and small ones between the pieces: on a slow
line a heartbeat must not wait for megabytes.
"""

from __future__ import annotations

import asyncio
import logging
import random
import socket
from collections import deque
from collections.abc import Callable
from typing import cast

import msgspec

from cluster.framing import HEAD_BYTES, PIECE_BYTES, Unframer, pieces, whole
from cluster.messages import WIRE_FORMAT, Append, Heartbeat, Hello, Message, SnapshotChunk, decode, decode_hello, encode
from cluster.settings import Settings

log = logging.getLogger("sockpqd.peers")

MESSAGE_BYTES_MAX = 32 << 20      # above the largest entry (16 MiB) with all that surrounds it
HELLO_BYTES_MAX = 4096          # what a stranger may send before he has said who he is
STRANGERS_MAX = 64              # connections that have not said it yet
LARGE_BYTES = 64 << 10          # who is in the middle of a message of this size is alive
WINDOW_BYTES = 256 << 10        # of large messages not more is given to the operating system at a time,
UNSENT_BYTES = 128 << 10        # which is asked to keep not more than this before it reaches the network
HELLO_S, DIAL_S = 2.0, 1.0
REDIAL_S = (0.03, 0.1)
REDIAL_REFUSED_S = 1.0          # a peer that does not want to talk to us is asked less and less often, at last so
SILENCE_S = 3.0                 # nodes tell of themselves four times a second; this much silence is a dead connection
COMPLAINT_S = 5.0               # at most one complaint about strangers in so many seconds,
COMPLAINT_AGAIN_S = 300.0       # and the same one again after so many



class _Link:
    """Both connections to one peer."""

    def __init__(self, name: str, address: str) -> None:
        self.name = name
        self.address = address
        self.task: asyncio.Task[None] | None = None     # dials
        self.outgoing: _Connection | None = None        # dialed by us, greeted by the peer
        self.incoming: _Connection | None = None        # dialed by the peer, greeted by us
        self.up = False
        self.early: list[bytes] = []                    # frames that may leave before the journal is synced
        self.late: list[bytes] = []
        self.large: deque[bytes] = deque()              # frames that give way to others; they may leave early, too
        self.large_bytes = 0
        self.waiting: list[Message] = []                # received before our own side was complete
        self.closed = asyncio.Event()                   # wakes the dialer


class _Connection(asyncio.Protocol):
    """One TCP connection to or from a peer; all decisions are the network's."""

    def __init__(self, network: PeerNetwork, link: _Link | None) -> None:
        self._network = network
        self._incoming = Unframer(HELLO_BYTES_MAX)
        self.link = link                                # known from the start when we dialed
        self.dialed = link is not None
        self.greeting: Hello | None = None
        self.transport: asyncio.Transport | None = None
        self.heard_at = 0.0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)     # uvloop's are not registered as such
        if self.dialed:
            self.transport.set_write_buffer_limits(WINDOW_BYTES)
            self.transport.get_extra_info("socket").setsockopt(
                socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES,
            )
        self._network.connected(self)

    def resume_writing(self) -> None:
        """The operating system takes more."""
        self._network.writable(self)

    def data_received(self, data: bytes) -> None:
        self._incoming.feed(data)
        if self.greeting is not None:
            self.heard_at = self._network.now()
        try:
            while self.transport is not None and (message := self._incoming.next()) is not None:
                if self.greeting is None:
                    self._network.greeted(self, decode_hello(message))
                    self._incoming.limit = MESSAGE_BYTES_MAX
                else:
                    self._network.received(self, decode(message))
            if self._incoming.waiting_bytes > LARGE_BYTES:
                self._network.receives_large(self)
        except (ValueError, msgspec.MsgspecError) as error:
            self._network.refuse(self, str(error))

    def connection_lost(self, error: Exception | None) -> None:
        self.transport = None
        self._network.disconnected(self)

    def send(self, message: bytes) -> None:
        """Write one message at once."""
        if self.transport is not None:
            self.transport.write(whole(message))

    def close(self) -> None:
        """Close when everything is sent."""
        if self.transport is not None:
            self.transport.close()

    def abort(self) -> None:
        """Close without waiting for what is unsent."""
        if self.transport is not None:
            self.transport.abort()


class PeerNetwork:
    """All links of a node. Events go to `inbox` as (name, Hello: link up | Message | None: link down), in order."""

    def __init__(
        self,
        settings: Settings,
        hello: Callable[[str], Hello],
        inbox: Callable[[str, Hello | Message | None], None],
        receiving: Callable[[str], None],
        stranger: Callable[[Hello], None],
    ) -> None:
        """`hello(receiver)`: our greeting; `receiving(name)`: a large message arrives; `stranger(hello)`: a node that
        is no peer greets us, and may be made one."""
        self._settings = settings
        self._hello = hello
        self._inbox = inbox
        self._receiving = receiving
        self._stranger = stranger
        self._links: dict[str, _Link] = {}
        self._strangers: set[_Connection] = set()
        self._server: asyncio.Server | None = None
        self._watching: asyncio.Task[None] | None = None    # set as long as this network is started
        self._complaint = ("", float("-inf"))       # the last one, and when
        self._loop = asyncio.get_running_loop()

    async def start(self) -> None:
        """Listen and begin to dial; raises OSError when the address cannot be used."""
        host, port = _address(self._settings.peer_listen)
        self._server = await self._loop.create_server(lambda: _Connection(self, None), host, port)
        self._watching = asyncio.create_task(self._watch())
        for link in self._links.values():
            self._begin(link)

    def _begin(self, link: _Link) -> None:
        if self._watching is not None and link.address:
            link.task = asyncio.create_task(self._dial(link))

    async def stop(self) -> None:
        """Close everything."""
        tasks = [task for task in (self._watching, *(link.task for link in self._links.values())) if task is not None]
        self._watching = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._server is not None:
            self._server.close()
        for link in self._links.values():
            self._close(link)
        for stranger in list(self._strangers):
            stranger.abort()
        await asyncio.sleep(0)

    # The driver's side

    def add_peer(self, name: str, address: str) -> None:
        """See Outbox."""
        if not address:
            log.error("nobody knows the address of %s: write it into the configuration of this node", name)
        link = self._links[name] = _Link(name, address)
        self._begin(link)

    def drop_peer(self, name: str) -> None:
        """See Outbox."""
        link = self._links.pop(name)
        if link.task is not None:
            link.task.cancel()
        self._close(link)

    def send(self, name: str, message: Message) -> None:
        """See Network."""
        link = self._links.get(name)
        if link is None or not link.up:
            return
        data = encode(message)
        if not isinstance(message, Append | SnapshotChunk):
            (link.early if isinstance(message, Heartbeat) else link.late).append(whole(data))
        elif len(data) > PIECE_BYTES or link.large:         # what is behind a large one must stay behind it
            link.large.extend(pieces(data))
            link.large_bytes += len(data)
        else:
            link.early.append(whole(data))

    def buffered_bytes(self, name: str) -> int:
        """See Network."""
        link = self._links.get(name)
        if link is None or link.outgoing is None or link.outgoing.transport is None:
            return 0
        return link.outgoing.transport.get_write_buffer_size() + link.large_bytes + sum(map(len, link.early))

    def flush_appends(self) -> None:
        """See Outbox."""
        for link in self._links.values():
            if link.early:
                self._write(link, link.early)
                link.early = []
            if link.large:
                self._write_large(link)

    def flush(self) -> None:
        """See Outbox."""
        self.flush_appends()
        for link in self._links.values():
            if link.late:
                self._write(link, link.late)
                link.late = []

    def _write(self, link: _Link, frames: list[bytes]) -> None:
        if link.outgoing is not None and link.outgoing.transport is not None:
            link.outgoing.transport.write(b"".join(frames))

    def _write_large(self, link: _Link) -> None:
        """Write pieces until the connection has enough to do; writable() is called when it has done that."""
        transport = link.outgoing.transport if link.outgoing is not None else None
        while transport is not None and link.large and transport.get_write_buffer_size() <= WINDOW_BYTES:
            piece = link.large.popleft()
            link.large_bytes -= len(piece) - HEAD_BYTES
            transport.write(piece)

    # The connections' side

    def writable(self, connection: _Connection) -> None:
        """What was written has left."""
        link = connection.link
        if link is not None and connection is link.outgoing:
            self._write_large(link)

    def connected(self, connection: _Connection) -> None:
        """A connection was made; who dialed speaks first."""
        connection.heard_at = self._loop.time()
        if connection.dialed and connection.link is not None:
            connection.send(encode(self._hello(connection.link.name)))
        elif len(self._strangers) >= STRANGERS_MAX:
            connection.abort()
        else:
            self._strangers.add(connection)

    def greeted(self, connection: _Connection, hello: Hello) -> None:
        """A Hello arrived; raises ValueError when we do not want to talk to its sender."""
        if hello.refused:
            raise ValueError(f"{hello.sender} does not want to talk to us: {hello.refused}")
        mine = self._hello(hello.sender)
        objection = self._objection(connection, hello, mine)
        if objection:
            if not connection.dialed:
                connection.send(encode(msgspec.structs.replace(mine, refused=objection)))
            raise ValueError(objection)
        connection.greeting = hello
        link = self._links[hello.sender]
        if connection.dialed:
            link.outgoing = connection
        else:
            self._strangers.discard(connection)
            if link.incoming is not None:               # the peer has restarted and we have not noticed yet
                self._close(link)
            connection.link = link
            link.incoming = connection
            connection.send(encode(mine))
        if link.incoming is not None and link.outgoing is not None and link.incoming.greeting is not None:
            link.up = True
            self._inbox(link.name, link.incoming.greeting)
            for message in link.waiting:
                self._inbox(link.name, message)
            link.waiting = []

    def _objection(self, connection: _Connection, hello: Hello, mine: Hello) -> str:
        """Why we do not want to talk to the sender of this greeting, "" if we do."""
        sender, name = hello.sender, self._settings.name
        if hello.format != WIRE_FORMAT:
            return f"{sender} speaks format {hello.format} of this protocol, {name} speaks {WIRE_FORMAT}"
        if hello.receiver != name:
            return f"{sender} looks for {hello.receiver}, this is {name}"
        if connection.link is not None and connection.link.name != sender:
            return f"{sender} answers where {name} looks for {connection.link.name}"
        if hello.cluster_id and mine.cluster_id and hello.cluster_id != mine.cluster_id:
            return f"{sender} and {name} belong to different clusters: one has the data directory of another cluster"
        if sender not in self._links:
            self._stranger(hello)
        if sender not in self._links:
            return f"{sender} is not a member of the cluster, as far as {name} knows"
        return ""

    def now(self) -> float:
        """The loop's time, seconds."""
        return self._loop.time()

    def receives_large(self, connection: _Connection) -> None:
        """The message is far from complete: its sender is busy with it, not silent."""
        link = connection.link
        if link is not None and link.up and connection is link.incoming:
            self._receiving(link.name)

    def received(self, connection: _Connection, message: Message) -> None:
        """A message of a greeted peer."""
        link = connection.link
        if link is None or connection is not link.incoming:
            return
        if link.up:
            self._inbox(link.name, message)
        else:
            link.waiting.append(message)

    def refuse(self, connection: _Connection, why: str) -> None:
        """Close a connection that makes no sense; one line in the log now and then."""
        now, (said, when) = self._loop.time(), self._complaint
        if now - when > (COMPLAINT_AGAIN_S if why == said else COMPLAINT_S):
            self._complaint = why, now
            address = connection.transport.get_extra_info("peername") if connection.transport else None
            log.warning("connection with %s closed: %s", address, why)
        connection.close()

    def disconnected(self, connection: _Connection) -> None:
        """A connection ended: so does the link it belongs to."""
        self._strangers.discard(connection)
        link = connection.link
        if link is not None and connection in (link.incoming, link.outgoing):
            self._close(link)
        elif link is not None:
            link.closed.set()

    def _close(self, link: _Link) -> None:
        incoming, outgoing, link.incoming, link.outgoing = link.incoming, link.outgoing, None, None
        link.early, link.late, link.waiting = [], [], []
        link.large.clear()
        link.large_bytes = 0
        for connection in (incoming, outgoing):
            if connection is not None:
                connection.abort()
        link.closed.set()
        if link.up:
            link.up = False
            self._inbox(link.name, None)

    async def _dial(self, link: _Link) -> None:
        host, port = _address(link.address)
        refused_s = 0.0
        while True:
            link.closed.clear()
            try:
                async with asyncio.timeout(DIAL_S):
                    _, connection = await self._loop.create_connection(lambda: _Connection(self, link), host, port)
            except (OSError, TimeoutError):
                pass
            else:
                try:
                    heard = await self._until_closed(link, connection)
                finally:
                    connection.abort()
                refused_s = 0.0 if heard else min(REDIAL_REFUSED_S, refused_s + REDIAL_S[1])
            await asyncio.sleep(refused_s + random.uniform(*REDIAL_S))

    async def _until_closed(self, link: _Link, connection: _Connection) -> bool:
        """Wait for the end of a connection; returns whether the peer wanted to talk to us."""
        deadline = self._loop.time() + HELLO_S
        while connection.greeting is None and connection.transport is not None:
            if self._loop.time() > deadline:
                return False
            await asyncio.sleep(0.005)
        if link.outgoing is connection:
            await link.closed.wait()
        return connection.greeting is not None

    async def _watch(self) -> None:
        """Close connections that have gone silent or never said who they are."""
        while True:
            await asyncio.sleep(0.5)
            now = self._loop.time()
            for link in list(self._links.values()):
                if link.up and link.incoming is not None and now - link.incoming.heard_at > SILENCE_S:
                    log.info("%s has been silent for %.0f s", link.name, SILENCE_S)
                    self._close(link)
            for stranger in [s for s in self._strangers if now - s.heard_at > HELLO_S]:
                stranger.abort()


def _address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
