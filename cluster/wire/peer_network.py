"""Connections between nodes.

Each node dials every other node and sends only on the connection it dialled; it receives on the one that the peer
dialled. A link is up while both are established, and when one ends the other is closed too, so a message of an old
connection is never mistaken for a new one. Anything but a message of a known peer ends the connection with one line in
the log.

There are few places for connections that have not greeted yet. Addresses share them as they share those of TLS
handshakes, so no single host can keep the members out.

With TLS both sides present certificates, each for the name of its node. A node that cannot do that gets no answer, not
even the reason.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import random
from collections.abc import Callable

import msgspec

from sockpqd.cluster import limits
from sockpqd.cluster.settings import NodeSettings
from sockpqd.cluster.wire.duplicate_nodes import address, copied, duplicate_log_line, refused_duplicate, same_process
from sockpqd.cluster.wire.messages import Hello, Message, encode, incompatible
from sockpqd.cluster.wire.peer_connection import PeerConnection
from sockpqd.cluster.wire.peer_link import LinkConnection, PeerLink
from sockpqd.cluster.wire.refusal_log import RefusalLog
from sockpqd.cluster.wire.tls import TlsTransport, certificate_names
from sockpqd.cluster.wire.tls_handshakes import Handshakes

log = logging.getLogger("sockpqd.peers")


class PeerNetwork:
    """All links of a node. Events go to `inbox` in order, as (name, Hello for up | Message | None for down)."""

    def __init__(
        self,
        settings: NodeSettings,
        hello: Callable[[str], Hello],
        inbox: Callable[[str, Hello | Message | None], None],
        receiving: Callable[[str], None],
        stranger: Callable[[Hello], None],
    ) -> None:
        """Create a network, which start() starts.

        `hello(receiver)`: our greeting; `receiving(name)`: part of a large message arrived; `stranger(hello)`: an
        unknown node greets us, and may be made a peer.
        """
        self._settings = settings
        self._hello = hello
        self._inbox = inbox
        self._receiving = receiving
        self._stranger = stranger
        self._links: dict[str, PeerLink] = {}
        self._queued = False                        # some link may have something to flush
        self._holding = False                       # some link may have something to release
        self._server: asyncio.Server | None = None
        self._watching: asyncio.Task[None] | None = None    # set while this network is started
        self._loop = asyncio.get_running_loop()
        self._refusals = RefusalLog(log)
        self._handshakes = Handshakes(limits.STRANGERS_MAX, limits.HELLO_S, self._refusals.refused)
        self._strangers = Handshakes(limits.STRANGERS_MAX, limits.HELLO_S, self._refusals.refused)   # yet to greet us

    async def start(self) -> None:
        """Listen and start dialling. Raises OSError if the address cannot be used."""
        address = self._settings.peer_listen
        try:
            self._server = await self._loop.create_server(
                lambda: self._protocol(PeerConnection(self, None)), *_address(address))
        except OSError as error:
            number = error.errno or errno.EIO
            reason = os.strerror(number) if number > 0 else error.strerror      # negative: of getaddrinfo
            raise OSError(number, f'listen.peer = "{address}": {reason}') from error
        self._watching = asyncio.create_task(self._watch())
        for link in self._links.values():
            self._begin(link)

    def _protocol(self, connection: PeerConnection) -> asyncio.Protocol:
        """The protocol for a TCP connection: the connection itself, or TLS with it on top."""
        tls = self._settings.tls
        if tls is None:
            return connection
        context = tls.dialing if connection.dialed else tls.listening
        return TlsTransport(context, connection, self._handshakes, server_side=not connection.dialed)

    def _begin(self, link: PeerLink) -> None:
        if self._watching is not None and link.task is None and link.addresses.present:
            link.task = asyncio.create_task(self._dial(link))

    async def stop(self) -> None:
        """Close all connections and stop listening."""
        tasks = [task for task in (self._watching, *(link.task for link in self._links.values())) if task is not None]
        self._watching = None
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._server is not None:
            self._server.close()
        for link in self._links.values():
            self._close(link)
        self._handshakes.close()
        self._strangers.close()
        await asyncio.sleep(0)

    # The interface for the driver

    def add_peer(self, name: str, address: str) -> None:
        if not address:
            log.error("the address of %s is unknown: add it to the configuration of this node", name)
        link = self._links[name] = PeerLink(name, address)
        self._begin(link)

    def drop_peer(self, name: str) -> None:
        link = self._links.pop(name)
        if link.task is not None:
            link.task.cancel()
        self._close(link)

    def send(self, name: str, message: Message) -> None:
        link = self._links.get(name)
        if link is None or not link.up:
            return
        self._queued = True
        link.add(message)

    def buffered_bytes(self, name: str) -> int:
        link = self._links.get(name)
        return 0 if link is None else link.unsent_bytes()

    def unsent_calls_bytes(self, name: str) -> int:
        link = self._links.get(name)
        return 0 if link is None else link.unsent_calls_bytes()

    def flush_appends(self) -> None:
        if self._queued:
            for link in self._links.values():
                link.flush_early()

    def hold(self) -> None:
        self._holding = True
        for link in self._links.values():
            link.hold()

    def release(self) -> None:
        if self._holding:
            self._holding = False
            for link in self._links.values():
                link.release()

    def flush(self) -> None:
        self.release()
        if self._queued:
            self._queued = False
            for link in self._links.values():
                if link.flush():
                    self._queued = True

    # The callbacks of connections

    def writable(self, connection: PeerConnection) -> None:
        """Write more of a large message."""
        link = connection.link
        if link is not None and connection is link.outgoing:
            link.write_large()

    def connected(self, connection: PeerConnection) -> None:
        """Start with a new connection: greet the peer if we dialled, otherwise wait for its greeting."""
        connection.heard_at = self._loop.time()
        if connection.dialed and connection.link is not None:
            if unproven := self._unproven(connection, connection.link.name):
                self.refuse(connection, unproven)
            else:
                connection.send(encode(self._hello(connection.link.name)))
        elif connection.host is None or not self._strangers.begin(connection, connection.host):
            connection.abort()

    def greeted(self, connection: PeerConnection, hello: Hello) -> None:
        """Check a Hello and complete the link. Raises ValueError if its sender is refused, or refuses us."""
        if unproven := self._unproven(connection, hello.sender):
            raise ValueError(unproven)
        if hello.refused:
            raise ValueError(f"{hello.sender} refuses this node: {hello.refused}")
        mine = self._hello(hello.sender)
        objection = self._objection(connection, hello, mine)
        if objection:
            if not connection.dialed:
                connection.send(encode(msgspec.structs.replace(mine, refused=objection)))
            raise ValueError(objection)
        connection.greeting = hello
        link = self._links[hello.sender]
        link.addresses.hear(hello, mine)
        self._begin(link)                                   # if its address was unknown
        self._part_twins(connection, hello, link)
        if connection.dialed:
            link.addresses.found()
            link.outgoing = connection
        else:
            self._strangers.end(connection)
            if link.incoming is not None:               # the peer has restarted and we had not noticed
                self._close(link)
            connection.link = link
            link.incoming = connection
            connection.send(encode(mine))
        if link.incoming is not None and link.outgoing is not None and link.incoming.greeting is not None:
            link.up = True
            self._inbox(link.name, link.addresses.believed(link.incoming.greeting))
            for message in link.waiting:
                self._inbox(link.name, message)
            link.waiting = []

    def _part_twins(self, connection: PeerConnection, hello: Hello, link: PeerLink) -> None:
        """Close connections to any other process than this greeting's: a link never leads to two processes."""
        dialed = connection.dialed
        other = link.incoming if dialed else link.outgoing
        if other is None or other.greeting is None or same_process(other.greeting, hello):
            return
        if dialed:                      # who answers at the node's address is the node
            link.incoming, link.waiting = None, []
            other.unlink()
            self.refuse(other, duplicate_log_line(hello.sender, address(other), address(connection)))
        else:                           # it may have been restarted: dial again, and see who answers
            self._close(link)

    def _unproven(self, connection: PeerConnection, name: str) -> str:
        """Return why the certificate does not prove that this is the node `name`; "" if it does."""
        if self._settings.tls is None or connection.transport is None:
            return ""
        names = certificate_names(connection.transport)
        if name.lower() in (proven.lower() for proven in names):
            return ""
        return f"its certificate is for {' '.join(names) or 'no name'}, not for {name}"

    def _objection(self, connection: PeerConnection, hello: Hello, mine: Hello) -> str:
        """Return why we refuse the sender of this greeting; "" if we accept it."""
        sender, name = hello.sender, self._settings.name
        if reason := incompatible(hello, mine):
            return reason
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
        link = self._links[sender]
        refused = refused_duplicate(connection, hello, link, self._loop.time())
        return refused or copied(hello, mine, self._links.values())

    def now(self) -> float:
        return self._loop.time()

    def receives_large(self, connection: PeerConnection) -> None:
        """Report that part of a large message of a linked peer arrived."""
        link = connection.link
        if link is not None and link.up and connection is link.incoming:
            self._receiving(link.name)

    def received(self, connection: PeerConnection, message: Message) -> None:
        """Pass on a message, or keep it until the link is up."""
        link = connection.link
        if link is None or connection is not link.incoming:
            return
        if link.up:
            self._inbox(link.name, message)
        else:
            link.waiting.append(message)

    def refuse(self, connection: LinkConnection, why: str) -> None:
        """Close an invalid connection, with a rate-limited line in the log."""
        address = connection.transport.get_extra_info("peername") if connection.transport else None
        self._refusals.refused(address, why)
        connection.close()

    def disconnected(self, connection: PeerConnection) -> None:
        """Close the link that an ended connection belongs to."""
        self._strangers.end(connection)
        link = connection.link
        if link is not None and connection in (link.incoming, link.outgoing):
            self._close(link)
        elif link is not None:
            link.closed.set()

    def _close(self, link: PeerLink) -> None:
        link.clear()
        if link.up:
            link.up = False
            self._inbox(link.name, None)

    async def _dial(self, link: PeerLink) -> None:
        refused_s = 0.0
        while True:
            link.closed.clear()
            host, port = _address(link.addresses.present)
            heard = False
            connection = PeerConnection(self, link)
            protocol = self._protocol(connection)
            try:
                async with asyncio.timeout(limits.DIAL_S):
                    transport, _ = await self._loop.create_connection(lambda: protocol, host, port)  # noqa: B023
            except (OSError, TimeoutError):
                protocol.connection_lost(None)
            except asyncio.CancelledError:
                protocol.connection_lost(None)  # which uvloop keeps to itself when it has just been made
                raise
            else:
                try:
                    heard = await self._until_closed(link, connection)
                finally:
                    transport.abort()
                refused_s = 0.0 if heard else min(limits.REDIAL_REFUSED_S, refused_s + limits.REDIAL_S[1])
            if not heard:
                link.addresses.missed()
            await asyncio.sleep(refused_s + random.uniform(*limits.REDIAL_S))

    async def _until_closed(self, link: PeerLink, connection: PeerConnection) -> bool:
        """Wait until a connection ends; returns whether the peer accepted us."""
        deadline = self._loop.time() + limits.HELLO_S
        while connection.greeting is None and not connection.ended:
            if self._loop.time() > deadline:
                return False
            await asyncio.sleep(0.005)
        if link.outgoing is connection:
            await link.closed.wait()
        return connection.greeting is not None

    async def _watch(self) -> None:
        """Close connections that have fallen silent."""
        now = self._loop.time()
        while True:
            await asyncio.sleep(limits.WATCH_S)
            looked, now = now, self._loop.time()
            if now - looked > 2 * limits.WATCH_S:
                continue                    # this process stood still, and has not read yet what arrived meanwhile
            for link in list(self._links.values()):
                if link.up and link.incoming is not None and now - link.incoming.heard_at > limits.SILENCE_S:
                    log.info("%s has been silent for %.0f s", link.name, limits.SILENCE_S)
                    self._close(link)


def _address(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host.strip("[]"), int(port)
