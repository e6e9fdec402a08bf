"""One connection to one server: commands go in, answers come out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sockpq.addresses import Address
from sockpq.commands import SESSION_CLOSE, Command
from sockpq.network import Network, Stream
from sockpq.protocol import Answer, Protocol
from sockpq.retry import Lost
from sockpq.session import Session


class Link:
    """An open connection. For one call at a time, except `abort`."""

    def __init__(self, address: Address, stream: Stream) -> None:
        """`address`: the server's, as it was dialed."""
        self.address = address
        self.protocol = Protocol()
        self.session: Session | None = None     # the one it speaks for
        self.sessionless = False                # the server has no sessions
        self._stream = stream
        self._finished = False

    @classmethod
    async def open(cls, network: Network, address: Address, timeout: float) -> Link:
        """Connect within `timeout` seconds; raises Lost."""
        try:
            return cls(address, await network.connect(address, timeout))
        except TimeoutError as error:
            raise Lost(f"{address}: not connected within {timeout:g} s", sent=False) from error
        except (OSError, UnicodeError) as error:        # UnicodeError: a name DNS cannot spell
            raise Lost(f"{address}: {error}", sent=False) from error

    async def send(self, command: Command[Any], number: int, timeout: float) -> bool:
        """Send one command; was it handed over completely? Otherwise it is not executed, and the connection is lost."""
        line, data = self.protocol.send(command, number)
        size = len(line) + len(data)
        return await self._stream.send((line, data) if data else (line,), timeout) == size

    async def send_many(self, requests: Sequence[tuple[Command[Any], int]], timeout: float) -> int:
        """Send commands; returns how many were handed over completely: less than all means the connection is lost.

        `timeout` seconds limit the time without progress. A command that was not handed over completely cannot be
        executed: the server waits for its last byte in vain.
        """
        parts = [self.protocol.send(command, number) for command, number in requests]
        buffers = [b"".join(part for pair in parts for part in pair)] if len(parts) > 1 else parts[0]
        sent = await self._stream.send(buffers, timeout)
        for count, (line, data) in enumerate(parts):
            sent -= len(line) + len(data)
            if sent < 0:
                return count
        return len(parts)

    async def receive(self, timeout: float) -> list[Answer]:
        """The answers in what comes next, possibly none yet; waits at most `timeout` seconds for it.

        Raises TimeoutError, Lost when the connection has ended, ProtocolError when what came is not the protocol.
        """
        try:
            data = await self._stream.receive(timeout)
        except TimeoutError:
            raise
        except OSError as error:
            raise self.lost(str(error)) from error
        if not data:
            raise self.lost("the server closed the connection", orderly=not self.protocol.amid_answer)
        return self.protocol.receive(data)

    def lost(self, reason: str, orderly: bool = False) -> Lost:
        """The error for commands that were sent completely and will get no answer here."""
        return Lost(f"{self.address}: {reason}", sent=True, waiting=self.protocol.waiting, orderly=orderly)

    @property
    def at_rest(self) -> bool:
        """Is every command answered, and may another one be sent?"""
        return self.protocol.at_rest and not self._finished

    def usable(self) -> bool:
        """Is it still open, at rest, and with nothing unasked in it?"""
        return self.at_rest and self._stream.quiet()

    def peer(self) -> Address:
        """The numeric address this connection goes to."""
        return self._stream.peer()

    def finish(self) -> None:
        """Tell the server that nothing more will be sent: it cancels what is blocked and closes (PROTOCOL.md A9)."""
        self._finished = True
        self._stream.finish()

    def abort(self) -> None:
        """End it from another thread: the one that waits on it wakes up."""
        self._stream.abort()

    def close(self, session: bool = False) -> None:
        """Close it, and with `session` end the session it speaks for, without waiting for the answer."""
        self._stream.close(SESSION_CLOSE if session and self.session and self.at_rest else b"")
