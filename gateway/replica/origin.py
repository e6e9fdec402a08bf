"""A connection to one server of the origin."""

from __future__ import annotations

import asyncio
import contextlib
import os
import ssl
from types import TracebackType

from sockpqd.connections import set_up
from sockpqd.gateway.replica.settings import OriginSettings

CONNECT_S = 10.0            # for TCP and TLS,
ANSWER_S = 30.0             # for the answer to a command,
SNAPSHOT_S = 3600.0         # for the first line of a snapshot, which is written to the disk first,
SILENCE_S = 20.0            # and for anything of a feed or a snapshot
READ_BYTES = 256 << 10
CLOSED = "it closed the connection"
LINE_BYTES_MAX = 1 << 20    # rows of CLUSTER STATUS and the like

Address = tuple[str, int]


class OriginError(Exception):
    """This server of the origin cannot be used now; the message says why."""


class OriginConnection:
    """An authenticated connection. All methods raise OriginError when it breaks or is silent for too long."""

    def __init__(self, address: Address, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.address = address
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, address: Address, settings: OriginSettings) -> OriginConnection:
        """Connect to a server, and authenticate. Raises OriginError."""
        host, port = address
        try:
            async with asyncio.timeout(CONNECT_S):
                reader, writer = await asyncio.open_connection(
                    host, port, ssl=settings.context, limit=LINE_BYTES_MAX,
                    server_hostname=host if settings.context is not None else None)
        except (OSError, TimeoutError) as error:
            raise OriginError(_distrust(error) or f"no connection ({_reason(error)})") from error
        set_up(writer.get_extra_info("socket"))     # a snapshot may be waited for much longer than a host is away
        origin = cls(address, reader, writer)
        try:
            await origin._authenticate(settings)
        except BaseException:
            await origin.close()
            raise
        return origin

    async def __aenter__(self) -> OriginConnection:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection at once."""
        self._writer.transport.abort()
        with contextlib.suppress(OSError):
            await self._writer.wait_closed()

    async def _authenticate(self, settings: OriginSettings) -> None:
        if settings.user is None:
            return
        try:
            secret = settings.secret()
        except (OSError, ValueError) as error:
            raise OriginError(f"replica.secret_file cannot be read: {error}") from error
        answer = await self.ask(f"AUTH {settings.user} {secret}")
        if not answer.startswith("200"):
            raise OriginError(f"it refuses the user {settings.user}: {answer}")

    async def ask(self, line: str, answer_s: float = ANSWER_S) -> str:
        """Send a command; return the first line of the answer."""
        self._writer.write(f"{line}\r\n".encode())
        return await self.line(answer_s)

    async def line(self, answer_s: float = ANSWER_S) -> str:
        """Return the next line, without its end."""
        try:
            async with asyncio.timeout(answer_s):
                line = await self._reader.readuntil(b"\n")
        except TimeoutError:
            raise OriginError(f"no answer for {answer_s:.0f} s") from None
        except asyncio.IncompleteReadError as error:
            raise OriginError(CLOSED) from error
        except (OSError, asyncio.LimitOverrunError) as error:
            raise OriginError(f"the connection broke ({_reason(error)})") from error
        return line.decode("utf-8", "replace").strip()

    async def read(self) -> bytes:
        """Return the next bytes, at least one."""
        try:
            async with asyncio.timeout(SILENCE_S):
                data = await self._reader.read(READ_BYTES)
        except TimeoutError:
            raise OriginError(f"it was silent for {SILENCE_S:.0f} s") from None
        except OSError as error:
            raise OriginError(f"the connection broke ({_reason(error)})") from error
        if not data:
            raise OriginError(CLOSED)
        return data

    async def cluster(self) -> str | None:
        """Return the id of the cluster as CLUSTER ID says it; None if the server does not know it yet."""
        answer = await self.ask("CLUSTER ID")
        words = answer.split()
        if len(words) < 3 or words[:2] != ["200", "OK"]:
            raise OriginError(f"CLUSTER ID was answered {answer}")
        return None if words[2] == "-" else words[2]

    async def leads(self) -> bool:
        """Return whether this server is the leader, as far as it knows."""
        number = (await self.ask("INTERCONNECT")).split()[-1:]
        answer = await self.ask("CLUSTER LEADER")
        if answer == "404 No Leader":
            return False
        words = answer.split()
        if len(words) != 5 or words[:2] != ["200", "OK"]:
            raise OriginError(f"CLUSTER LEADER was answered {answer}")
        return words[2:3] == number


def _distrust(error: BaseException) -> str | None:
    """Describe an error of TLS by its cause and the key of the configuration; None if it is another one."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}; compare replica.ca and replica.of"
    if isinstance(error, ssl.SSLError):
        return f"no TLS with it ({error.reason or error}): replica.of needs ports for clients, of an origin with TLS"
    return None


def _reason(error: BaseException) -> str:
    """Return what the operating system calls this error, without its number."""
    if isinstance(error, OSError) and error.errno is not None and error.errno > 0:
        return os.strerror(error.errno).lower()
    return str(error) or type(error).__name__
