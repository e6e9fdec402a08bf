"""The asyncio shell around a conversation: it forwards socket events and makes no decisions."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import cast

from sockpqd.cluster import RefusalLog
from sockpqd.connections import AcceptedConnection, Expected, SlotKind, is_loopback
from sockpqd.gateway.limits import LINGER_S, REFUSED_PLACES, TRIAL_S
from sockpqd.gateway.protocol.responses import BUSY
from sockpqd.gateway.server.client_output import SHARED_BYTES_MIN, ClientOutput
from sockpqd.gateway.server.conversation import Conversation
from sockpqd.gateway.server.hub import Hub
from sockpqd.gateway.server.port import Port


class Connection(asyncio.Protocol):
    """One client's TCP connection, with or without TLS underneath."""

    _transport: asyncio.Transport
    _conversation: Conversation | None = None
    _accepted: AcceptedConnection | None = None     # None: it has no place
    _outbox: ClientOutput | None = None   # while there is more than the transport should have
    _trial: asyncio.TimerHandle | None = None
    peer = ""
    secure = False              # cannot be eavesdropped on: TLS, or it does not leave this machine

    def __init__(self, hub: Hub, port: Port, complaints: RefusalLog) -> None:
        self.user = port.user
        self._hub = hub
        self._port = port
        self._complaints = complaints
        self._written_bytes = 0
        self._end_of_input = False
        self._lost = False
        self._ending = False    # to be closed when everything is sent
        self._finishing: asyncio.TimerHandle | None = None

    # ---- asyncio.Protocol

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Accept a new client, or refuse it if its network or the connection limits do not allow it."""
        self._transport = cast(asyncio.Transport, transport)
        host, number = (transport.get_extra_info("peername") or ("", 0))[:2]    # empty: it is gone already
        if host and not self._port.admits(host):
            self._complaints.refused((host, number), f"it is in none of the networks of the port of {self.user}")
            self._transport.abort()
            return
        accepted = self._hub.connection_manager.receive(transport, self)
        if accepted.slot is SlotKind.REFUSED:
            self._refuse()
            return
        self._accepted = accepted
        self.peer = accepted.peer
        self.secure = transport.get_extra_info("ssl_object") is not None or is_loopback(host)
        on_trial = accepted.slot is SlotKind.PROVISIONAL
        self._conversation = Conversation(self._hub, self, on_trial=on_trial)
        if on_trial:
            self._trial = asyncio.get_running_loop().call_later(TRIAL_S, self._look_at_trial)
        self._hub.connections.add(self)
        self._hub.tally.connections += 1

    def data_received(self, data: bytes) -> None:
        """Feed received bytes to the conversation."""
        if self._conversation is not None:
            self._conversation.receive(data)

    def eof_received(self) -> bool:
        """Handle a half-close: the client sends no more but may still read."""
        self._end_of_input = True
        if self._finishing is not None:
            if self._taken():
                self._transport.close()
        elif self._conversation is not None:
            self._conversation.end()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything that belongs to the lost connection."""
        self._lost = True
        self._hub.connections.discard(self)
        self._hub.refused.discard(self)
        self._drop_output()
        if self._accepted is not None:
            self.end_trial()
            self._accepted.leave()
        if self._finishing is not None:
            self._finishing.cancel()
        if self._conversation is not None:
            self._conversation.lost()
            self._conversation = None

    def pause_writing(self) -> None:
        """Back-pressure: the client is not reading what is written to it."""
        if self._conversation is not None and self._accepted is not None:
            self._accepted.measure()
            self._conversation.output_full()

    def resume_writing(self) -> None:
        """Resume sending answers: the write buffer has drained."""
        if self._outbox is not None:
            self._hub.shared_output.send(self)
        else:
            self._output_taken()

    def _output_taken(self) -> None:
        if self._conversation is not None and self._accepted is not None:
            self._accepted.kernel_bytes = 0        # it reads; the next sweep will tell
            self._conversation.output_taken()

    def _refuse(self) -> None:
        """Turn the client away with 503. Unless too many are being refused, linger so that the answer arrives."""
        self._hub.tally.refused_connections += 1
        self._transport.write(BUSY)
        if len(self._hub.refused) < REFUSED_PLACES:
            self._hub.refused.add(self)
            self.finish()
        else:
            self._transport.close()

    def _look_at_trial(self) -> None:
        """End the trial of a client that has not authenticated as an administrator, unless our answer is pending."""
        conversation = self._conversation
        if conversation is None or conversation.closed:
            return
        if conversation.expected()[0] is Expected.OURS:
            self._trial = asyncio.get_running_loop().call_later(TRIAL_S, self._look_at_trial)
        else:
            conversation.say_last(BUSY)

    def hang_up(self) -> None:
        """Close after the answers so far are sent, because this node is stopping."""
        if self._conversation is not None:
            self._conversation.finish()

    # ---- ManagedConnection

    @property
    def unauthenticated(self) -> bool:
        return self._conversation is not None and self._conversation.unauthenticated

    def expected(self) -> tuple[Expected, int]:
        return (Expected.OURS, 0) if self._conversation is None else self._conversation.expected()

    def taken_bytes(self) -> int:
        return self._written_bytes - self.unsent_bytes()

    def weigh(self) -> None:
        if self._conversation is not None:
            self._conversation.pipeline.weigh()

    def cut(self, why: str) -> None:
        """See ManagedConnection. Also works when the conversation has ended and only its answers are left."""
        if self._conversation is not None:
            self._conversation.cut(why)
        self.abort()

    # ---- Link

    def write(self, data: bytes) -> None:
        self._written_bytes += len(data)
        if self._outbox is None:
            self._transport.write(data)
        else:
            self._outbox.add(data)

    def tell(self, lines: list[bytes]) -> None:
        """Send lines; large ones are held once for all clients that have not read them."""
        if max(map(len, lines)) < SHARED_BYTES_MIN:
            self.write(b"".join(lines))
            return
        if self._lost:
            return
        outbox = self._outbox
        if outbox is None:
            outbox = self._outbox = ClientOutput(self._hub.shared_output, self.weigh)
        small: list[bytes] = []
        for line in lines:
            self._written_bytes += len(line)
            if len(line) < SHARED_BYTES_MIN:
                small.append(line)
                continue
            if small:
                outbox.add(b"".join(small))
                small = []
            outbox.share(line)
        if small:
            outbox.add(b"".join(small))
        self.weigh()
        self._hub.shared_output.send(self)

    def send_slice(self) -> bool:
        outbox, transport = self._outbox, self._transport
        if outbox is None or transport.get_write_buffer_size():     # there is no more, or resume_writing() will follow
            return False
        transport.write(outbox.next())
        if outbox:
            return not transport.get_write_buffer_size()
        self._outbox = None
        self.weigh()
        if self._ending:
            self._close()
        elif not transport.get_write_buffer_size():
            self._output_taken()
        return False

    def _drop_output(self) -> None:
        outbox, self._outbox = self._outbox, None
        if outbox is not None:
            outbox.clear()

    def unsent_bytes(self) -> int:
        """Return how many written bytes the kernel has not accepted yet or, if they are the last, has not sent."""
        unsent = self._transport.get_write_buffer_size()
        if self._finishing is not None and self._accepted is not None:
            unsent += self._accepted.kernel_bytes      # the connection is kept for these only
        return unsent if self._outbox is None else unsent + self._outbox.unsent_bytes

    def held_bytes(self) -> int:
        """Return the memory held for written data, here and by the kernel, in bytes."""
        if self._lost:
            return 0
        held = self._transport.get_write_buffer_size()
        if self._outbox is not None:
            held += self._outbox.charged_bytes
        return held if self._accepted is None else held + self._accepted.kernel_bytes

    def pause(self) -> None:
        self._transport.pause_reading()

    def resume(self) -> None:
        self._transport.resume_reading()

    def end_trial(self) -> None:
        """End the trial: the client has turned out to be an administrator, or is leaving."""
        if self._trial is not None and self._accepted is not None:
            self._trial.cancel()
            self._trial = None
            self._accepted.end_trial()

    def expect_distance(self) -> None:
        """Let the kernel hold more unsent data: the client is far away and reads much."""
        if self._accepted is not None:
            self._accepted.expect_distance()

    def finish(self) -> None:
        """Close after pending writes; input that still arrives is read and dropped for a moment."""
        if self._outbox is not None:
            self._ending = True
        elif not self._lost:
            self._close()

    def _close(self) -> None:
        if self._end_of_input and self._taken():
            self._transport.close()
        else:
            if not self._end_of_input:
                self._transport.resume_reading()
            with suppress(OSError):         # the client was faster, and the loop does not know yet
                self._transport.write_eof()
        self._finishing = asyncio.get_running_loop().call_later(LINGER_S, self._linger)

    def _taken(self) -> bool:
        """Return whether the client has accepted nearly all of its answers.

        The kernel would keep unread data of a closed connection for minutes, and it would not be counted.
        """
        if self._accepted is None or self._lost:
            return True
        self._accepted.measure()
        if not self._accepted.kernel_bytes:
            return True
        self.weigh()
        return False

    def _linger(self) -> None:
        if not self._transport.get_write_buffer_size() and self._taken():
            self._transport.abort()
        else:
            self._finishing = asyncio.get_running_loop().call_later(LINGER_S, self._linger)

    def abort(self) -> None:
        """Close immediately, dropping unsent output."""
        self._drop_output()
        if self._accepted is not None:
            self._accepted.drop_when_closed()
        self._transport.abort()
