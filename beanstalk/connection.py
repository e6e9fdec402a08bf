"""The asyncio shell around a conversation, for programs with an event loop.

It forwards socket events, and reports to its host the memory held for the client.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from typing import Protocol, cast

from sockpqd.beanstalk.calls import Backend
from sockpqd.beanstalk.conversation import BeanstalkdConversation
from sockpqd.beanstalk.limits import READ_COMMANDS, READ_MUCH_BYTES
from sockpqd.beanstalk.server import BeanstalkdServer

log = logging.getLogger("sockpqd.beanstalkd")

LINGER_S = 1.0                  # how often it is looked whether a client has read its last answers
READ_COUNTED_BYTES = 4 << 10    # of one read; with fewer at most a small command has come


class Stay(Protocol):
    """The stay of an admitted connection."""

    kernel_bytes: int               # what the kernel holds for it, as last measured

    def measure(self) -> None:
        """Measure the kernel memory, as the client does not read."""

    def drop_when_closed(self) -> None:
        """Let the kernel drop unsent output on close: the connection is about to be closed."""

    def leave(self) -> None:
        """Forget the connection, which has been closed."""


class Host(Protocol):
    """The owner of the listener: admits connections, accounts for their memory, and enforces timeouts."""

    def receive(self, transport: asyncio.BaseTransport, connection: ClientConnection) -> Stay | None:
        """Admit a client; return None if there is no slot for it."""

    def hold(self, connection: ClientConnection, held_bytes: int) -> None:
        """Set the number of bytes held for this connection."""

    def no_room(self) -> bool:
        """Return whether there is no room for a body that has yet to arrive."""


class ClientConnection(asyncio.Protocol):
    """The connection of one client, as asyncio's protocol."""

    _transport: asyncio.Transport
    _conversation: BeanstalkdConversation | None = None       # None: it was not accepted
    _stay: Stay
    unauthenticated = False                                # nobody proves here who they are

    def __init__(self, server: BeanstalkdServer, backend: Backend, host: Host) -> None:
        self._server = server
        self._backend = backend
        self._host = host
        self._paused = False
        self._waits_to_be_read = False              # it has sent much: others are read first
        self._lost = False
        self._ending = False                        # nothing more is read or answered
        self._written_bytes = 0
        self._held_bytes = 0                        # as last reported

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Admit the client, or close it at once if there is no slot for it."""
        self._transport = cast(asyncio.Transport, transport)
        stay = self._host.receive(transport, self)
        if stay is None:
            self._transport.abort()
            return
        self._stay = stay
        self._conversation = BeanstalkdConversation(self._server, self._backend, self, self._host.no_room)

    def data_received(self, data: bytes) -> None:
        """Receive bytes; no more are read while too many are unexecuted, and after many not before its next turn.

        The loop reads up to 8 MiB of a socket at once as long as nobody stops it.
        """
        conversation = self._conversation
        if conversation is None:
            return
        if len(data) >= READ_MUCH_BYTES and not self._waits_to_be_read:
            self._waits_to_be_read = True
            self._server.turns.call_in_turn(self._read_again)
        if not self._ending:
            conversation.receive(data)
        if self._holds_back() is not self._paused:
            self._throttle()
        if not self._ending and (self._held_bytes or len(data) >= READ_COUNTED_BYTES or conversation.holds_much):
            self.weigh()

    def _holds_back(self) -> bool:
        """Return whether nothing is to be read now."""
        assert self._conversation is not None
        return self._waits_to_be_read or (self._conversation.reader.full and not self._ending)

    def _read_again(self) -> None:
        self._waits_to_be_read = False
        if not self._lost:
            self._server.turns.budget -= READ_COMMANDS
            self._throttle()

    def eof_received(self) -> bool:
        """Execute what the client has sent; it sends no more, but may still read."""
        if self._conversation is None:
            return False
        self._conversation.end()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        if self._conversation is not None:
            self._lost = True
            self._stay.leave()
            self._conversation.lost()
            self.weigh()

    def pause_writing(self) -> None:
        """Stop executing commands while the client does not read its answers."""
        if self._conversation is not None:
            self._stay.measure()
            self._conversation.output_full()
            self.weigh()

    def resume_writing(self) -> None:
        if self._conversation is not None:
            self._stay.kernel_bytes = 0             # it reads
            self._conversation.output_taken()
            self.weigh()

    # ---- for the host

    def expected(self) -> tuple[str, int]:
        """Return what is expected of the client; see `BeanstalkdConversation.expected`."""
        return ("ours", 0) if self._conversation is None else self._conversation.expected()

    def taken_bytes(self) -> int:
        """Return how many of the written bytes the kernel has accepted."""
        return self._written_bytes - self.unsent_bytes()

    def unsent_bytes(self) -> int:
        """Return how many of the written bytes the kernel has not accepted.

        If the connection ends with them, those that the kernel has not sent count, too.
        """
        unsent = self._transport.get_write_buffer_size()
        return unsent + self._stay.kernel_bytes if self._ending else unsent

    def weigh(self) -> None:
        """Report the memory held for the client."""
        held_bytes = 0
        if self._conversation is not None and not self._lost:
            held_bytes = self._conversation.held_bytes + self._stay.kernel_bytes
            held_bytes += self._transport.get_write_buffer_size()
        if held_bytes != self._held_bytes:
            self._held_bytes = held_bytes
            self._host.hold(self, held_bytes)

    def cut(self, why: str) -> None:
        """Close at once, and log the reason."""
        if not self._lost and not self._transport.is_closing():
            peer = self._transport.get_extra_info("peername") or ("?", "?")
            log.info("%s:%s: connection cut, %s", peer[0], peer[1], why)
        self.abort()

    def evict(self) -> None:
        """Release the client's memory at once."""
        self.cut("it holds too much memory")

    # ---- ClientLink

    def write(self, data: bytes) -> None:
        self._written_bytes += len(data)
        self._transport.write(data)
        if self._held_bytes:
            self.weigh()

    def close(self) -> None:
        """See ClientLink. The kernel would keep unread output of a closed connection for minutes, uncounted."""
        if self._lost or self._transport.is_closing():
            return
        self._stay.measure()
        if not self.unsent_bytes() and not self._stay.kernel_bytes:
            self._transport.close()
            return
        if not self._ending:
            self._ending = True
            self._throttle()
            with suppress(OSError, NotImplementedError):    # the client was faster, or TLS cannot do that
                self._transport.write_eof()
        self.weigh()
        asyncio.get_running_loop().call_later(LINGER_S, self.close)

    def read_on(self) -> None:
        if self._paused:
            asyncio.get_running_loop().call_soon(self._throttle)
        if self._held_bytes:
            self.weigh()

    def abort(self) -> None:
        """Close at once, and drop unsent output."""
        if self._conversation is not None:
            self._stay.drop_when_closed()
        self._transport.abort()

    def _throttle(self) -> None:
        holds_back = self._holds_back()
        if self._transport.is_closing() or holds_back == self._paused:
            return
        self._paused = holds_back
        if holds_back:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
