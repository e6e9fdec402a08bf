"""TLS over any stream, without IO of its own: the same code for the blocking client and for asyncio.

The bytes of TLS pass through two buffers in memory, so that the guarantees of Stream do not depend on the TLS of a
socket or of an event loop: the number of bytes handed over, time limits while bytes without data arrive (parts of
records, session tickets, key updates), a connection that is closed in one direction first.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from contextlib import suppress

from sockpq._backends.access import Access
from sockpq._backends.base import Stream
from sockpq._protocol.addresses import Address
from sockpq.errors import Untrusted

RECORD_BYTES = 16_384       # of data in one record of TLS, at most
READ_BYTES = 65_536
TINY_S = 0.001              # a timeout that is over still takes what is there

# The meanings of OpenSSL's error numbers (X509_V_ERR_..).
VERDICTS = {
    9: "its certificate is not valid yet, or the clock here is slow",
    10: "its certificate has expired",
    18: "its certificate is signed by itself, not by a CA that is known here",
    19: "its certificate is from a CA that is not known here",
    20: "its certificate is from a CA that is not known here",
    21: "its certificate is from a CA that is not known here",
    62: "its certificate is not for the name {host}",
    64: "its certificate is not for the address {host}",
}


class TlsStream:
    """A connection over TLS. For one thread or task at a time, except `abort` and `withdraw`."""

    def __init__(self, stream: Stream, context: ssl.SSLContext, address: Address, now: Callable[[], float]) -> None:
        """`address`: as dialed, it must match the server's certificate; `now`: the monotonic clock."""
        self._stream = stream
        self._address = address
        self._now = now
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = context.wrap_bio(self._incoming, self._outgoing, server_hostname=address.host)
        self._at_end = False                        # the other side has announced that it sends no more
        self._broken: OSError | None = None         # found after data that were still good

    async def shake_hands(self, timeout: float) -> None:
        """Shake hands, before anything else; raises Untrusted, OSError (TimeoutError is one)."""
        until = self._now() + timeout
        while True:
            try:
                self._tls.do_handshake()
                await self._flush(max(until - self._now(), TINY_S))
                return
            except ssl.SSLWantReadError:
                await self._flush(max(until - self._now(), TINY_S))
            except (ssl.SSLEOFError, ssl.SSLSyscallError) as error:
                raise ConnectionError("the server closed the connection instead of speaking TLS") from error
            except ssl.SSLError as error:
                await self._flush(TINY_S)           # the server is sent the reason
                raise Untrusted(f"{self._address}: {self._verdict(error)}") from error
            if self._now() >= until:
                raise TimeoutError
            self._feed(await self._stream.receive(max(until - self._now(), TINY_S)))

    def _verdict(self, error: ssl.SSLError) -> str:
        if isinstance(error, ssl.SSLCertVerificationError):
            known = VERDICTS.get(error.verify_code, f"its certificate is not good: {error.verify_message}")
            return known.format(host=self._address.host)
        if error.reason == "WRONG_VERSION_NUMBER":
            return "it does not speak TLS"
        return f"TLS with it is not possible: {_reason(error)}"

    async def send(self, buffers: Sequence[bytes], timeout: float) -> int:
        """Send all bytes; returns how many were handed over.

        Sends one record after another, because the other side cannot read an incomplete record.
        """
        if len(buffers) > 1 and sum(map(len, buffers)) <= RECORD_BYTES:
            buffers = [b"".join(buffers)]
        sent = 0
        with suppress(OSError):         # the count shows what was not handed over
            for buffer in buffers:
                rest = memoryview(buffer)
                while rest:
                    self._tls.write(rest[:RECORD_BYTES])
                    if not await self._flush(timeout):
                        return sent
                    sent += len(rest[:RECORD_BYTES])
                    rest = rest[RECORD_BYTES:]
        return sent

    async def receive(self, timeout: float) -> bytes:
        begun = self._now()
        left = timeout
        while True:
            if self._broken:
                raise self._broken
            if self._at_end:
                return b""
            data = self._take(await self._stream.receive(left))
            if self._outgoing.pending:              # a change of keys is answered
                await self._flush(timeout)
            if data:
                return data
            left = begun + timeout - self._now()
            if left <= 0 and not self._at_end:
                raise TimeoutError
            left = max(left, TINY_S)

    def arrived(self) -> bytes | None:
        """Return the bytes received so far, without waiting."""
        came = self._stream.arrived()
        if came is None:
            return None
        return self._take(came) or (b"" if self._at_end else None)

    def quiet(self) -> bool:
        """Return whether it is open without unexpected bytes. Session tickets may come at any time."""
        try:
            return not self._at_end and not self._broken and self.arrived() is None
        except OSError:
            return False

    def peer(self) -> Address:
        """Return the numeric address of the other side."""
        return self._stream.peer()

    def expires_at(self) -> int | None:
        certificate = self._tls.getpeercert()
        ends = certificate.get("notAfter") if certificate else None     # empty for one that was not verified
        return int(ssl.cert_time_to_seconds(ends)) if isinstance(ends, str) else None

    def finish(self, farewell: bytes = b"") -> None:
        self._stream.finish(self._last(farewell))

    def withdraw(self) -> None:
        """Send no more, not even TLS's end of data, whose state belongs to the thread that reads."""
        self._stream.withdraw()

    def abort(self) -> None:
        """Wake the thread or task that uses this stream with an error."""
        self._stream.abort()

    def close(self, farewell: bytes = b"") -> None:
        """Close it. Without last bytes nothing is sent at all: in a forked process the connection is the parent's."""
        self._stream.close(self._last(farewell) if farewell else b"")

    def _last(self, farewell: bytes) -> bytes:
        """Return the TLS records of these bytes and of the end of this direction."""
        with suppress(OSError):
            if farewell:
                self._tls.write(farewell)
            self._tls.unwrap()          # raises SSLWantReadError: the other direction is still open
        return self._outgoing.read()

    async def _flush(self, timeout: float) -> bool:
        """Send the pending bytes of TLS; return whether they were handed over."""
        data = self._outgoing.read()
        return not data or await self._stream.send((data,), timeout) == len(data)

    def _feed(self, came: bytes) -> None:
        """Give TLS the received bytes; b"": the connection has ended."""
        if came:
            self._incoming.write(came)
        else:
            self._incoming.write_eof()

    def _take(self, came: bytes) -> bytes:
        """Return the data in the received records, b"" when there are none yet. Raises OSError.

        A connection that ends without TLS's own end of data has been cut.
        """
        self._feed(came)
        records = []
        try:
            while True:
                record = self._tls.read(READ_BYTES)
                if not record:
                    self._at_end = True
                    break
                records.append(record)
                if not self._incoming.pending and came:
                    break
        except ssl.SSLWantReadError:
            pass
        except ssl.SSLZeroReturnError:
            self._at_end = True
        except ssl.SSLError as error:
            cut = isinstance(error, ssl.SSLEOFError)
            self._broken = ConnectionError("the connection was cut" if cut else f"TLS: {_reason(error)}")
            if not records:
                raise self._broken from error
        return b"".join(records)


async def secured(
    stream: Stream, context: ssl.SSLContext, access: Access, address: Address, until: float, now: Callable[[], float]
) -> Stream:
    """Return TLS over a new connection, by the time `until`; closes the stream on errors, which are as of
    shake_hands().

    A refusal because of settings that `access` has replaced in the meantime is an OSError: the next connection may
    succeed.
    """
    try:
        tls = TlsStream(stream, context, address, now)
        await tls.shake_hands(max(until - now(), TINY_S))
    except Untrusted as refusal:
        stream.close()
        if access.is_outdated(context):
            raise ConnectionError(f"{refusal}; the file with the CA has changed") from refusal
        raise
    except BaseException:
        stream.close()
        raise
    return tls


def _reason(error: ssl.SSLError) -> str:
    return (error.reason or str(error)).replace("_", " ").lower()
