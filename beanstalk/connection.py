"""The asyncio shell around a conversation, for whoever has an event loop: it forwards what happens to the socket."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from beanstalk.calls import Seat
from beanstalk.conversation import Conversation
from beanstalk.server import Server

OUTPUT_BYTES_MAX = 256 << 10    # unread answers, before no more commands are executed


class Connection(asyncio.Protocol):
    """One client's connection."""

    _transport: asyncio.Transport
    _conversation: Conversation | None = None       # None: it was not accepted

    def __init__(self, server: Server, seat: Seat) -> None:
        self._server = server
        self._seat = seat
        self._paused = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """A client has come."""
        self._transport = cast(asyncio.Transport, transport)
        self._transport.set_write_buffer_limits(OUTPUT_BYTES_MAX)
        self._conversation = Conversation(self._server, self._seat, self)

    def data_received(self, data: bytes) -> None:
        """Bytes have come; no more are read while too many are unexecuted."""
        conversation = self._conversation
        if conversation is not None:
            conversation.receive(data)
            if conversation.reader.full is not self._paused:
                self._throttle()

    def eof_received(self) -> bool:
        """The client sends no more, but may still read."""
        if self._conversation is None:
            return False
        self._conversation.end()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """The client is gone."""
        if self._conversation is not None:
            self._conversation.lost()

    def pause_writing(self) -> None:
        """The client does not read."""
        if self._conversation is not None:
            self._conversation.output_full()

    def resume_writing(self) -> None:
        """The client reads again."""
        if self._conversation is not None:
            self._conversation.output_taken()

    # ---- Link

    def write(self, data: bytes) -> None:
        """See Link."""
        self._transport.write(data)

    def close(self) -> None:
        """See Link."""
        self._transport.close()

    def soon(self, do: Callable[[], None]) -> None:
        """See Link."""
        asyncio.get_running_loop().call_soon(do)

    def read_on(self) -> None:
        """See Link."""
        if self._paused:
            asyncio.get_running_loop().call_soon(self._throttle)

    def abort(self) -> None:
        """Close at once: this program ends."""
        self._transport.abort()

    def _throttle(self) -> None:
        assert self._conversation is not None
        full = self._conversation.reader.full
        if self._transport.is_closing() or full == self._paused:
            return
        self._paused = full
        if full:
            self._transport.pause_reading()
        else:
            self._transport.resume_reading()
