"""The loop over events of Client.events()."""

from __future__ import annotations

from types import TracebackType

from sockpq._backends.asyncio import run
from sockpq._streaming.event_stream import EventStream
from sockpq.model import Event


class Events:
    """Iterates over events as they arrive, from any live server: `async for event in events`. See Client.events.

    After EventsLost the loop may be started again: it continues after the lost events.
    """

    def __init__(self, stream: EventStream) -> None:
        self._stream = stream

    @property
    def position(self) -> int | None:
        """The number of the newest event received, or before the loop began; None before a server's first answer."""
        return self._stream.position

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Event:
        """Return the next event; raises EventsLost."""
        event = await run(self._stream.next())
        if event is None:
            raise StopAsyncIteration
        return event

    async def __aenter__(self) -> Events:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        await self.close()

    async def open(self) -> Events:
        """Start to listen now, instead of with the first event. Raises Unavailable."""
        await run(self._stream.open())
        return self

    def stop(self) -> None:
        """Let the loop end. Any thread may call it."""
        self._stream.stop()

    async def close(self) -> None:
        """Stop listening, and give the connection back."""
        self._stream.leave()
