"""TLS between a TCP connection and the protocol above it, to which a `TlsTransport` is the transport.

OpenSSL works in memory here (ssl.MemoryBIO): bytes in, bytes out. asyncio's and uvloop's own TLS lack what both ports
need: the exact number of unsent bytes (large messages are sent as the line accepts them), closing one direction, the
reason of a failed handshake with the address, and spreading the handshakes of many clients over many turns of the loop.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections import deque
from collections.abc import Iterable
from typing import Any, cast

from sockpqd.cluster.wire.tls_handshakes import Handshakes
from sockpqd.cluster.wire.tls_records import TlsRecords

RECORD_BYTES = 16 << 10         # a record holds no more; a MemoryBIO never gives back the most that was in it at once
HANDSHAKE_RECORD = 22           # the first byte of a TLS handshake
FIRST_FLIGHT_BYTES_MAX = 16 << 10   # a ClientHello has some hundred bytes


class TlsTransport(asyncio.Protocol, asyncio.Transport):
    """TLS for the protocol `app`, which is notified of the connection after the handshake, and always of its end."""

    _below: asyncio.Transport

    def __init__(
        self, context: ssl.SSLContext, app: asyncio.Protocol, handshakes: Handshakes, *, server_side: bool
    ) -> None:
        """Make a TLS layer; `handshakes` schedules its handshake and logs why it is refused."""
        super().__init__()
        self._app = app
        self._handshakes = handshakes
        self._server_side = server_side
        self._received, self._to_send = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._ssl = context.wrap_bio(self._received, self._to_send, server_side=server_side)
        self._records = TlsRecords()
        self._portions: deque[tuple[bytes, int]] = deque()     # received in the handshake, and not handled yet
        self._begun = False             # the other side has sent something
        self._queued = False            # it is our turn in the handshake
        self._ready = False             # the handshake is complete
        self._ended = False             # nothing more is sent or read
        self._end_of_input = False

    # ---- asyncio.Protocol: what happens below

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register for a handshake on a new TCP connection."""
        self._below = cast(asyncio.Transport, transport)        # uvloop's are not registered as such
        if not self._server_side:
            self._handshakes.due(self)
        else:
            peer = transport.get_extra_info("peername")     # None: it is gone already
            if peer is None or not self._handshakes.begin(self, peer[0]):
                self.abort()

    def data_received(self, data: bytes) -> None:
        """Decrypt received bytes, or queue for the next step of the handshake."""
        if self._ended:
            return
        if not self._ready and not self._begun:
            self._begun = True
            if data[0] != HANDSHAKE_RECORD or len(data) > FIRST_FLIGHT_BYTES_MAX:
                self.refuse("it does not speak TLS")
                return
        portions = self._records.portions(data)
        if self._ready:
            self._read(portions)
        else:
            self._portions += portions
            self._below.pause_reading()         # until it is this connection's turn
            self._queued = True
            self._handshakes.due(self)

    def eof_received(self) -> bool:
        """Handle the end of input, with or without TLS's close_notify: our protocols know what is complete."""
        if not self._ready:
            return False
        if not self._ended:
            self._input_ended()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the end of the connection."""
        self._ended = True
        self._handshakes.end(self)
        self._app.connection_lost(exc)

    def pause_writing(self) -> None:
        """Pass on that the other side does not read."""
        if self._ready:
            self._app.pause_writing()

    def resume_writing(self) -> None:
        """Pass on that the other side reads again."""
        if self._ready:
            self._app.resume_writing()

    # ---- the handshake

    def step(self) -> None:
        if self._ended:
            return
        self._queued = False
        if self._portions:
            self._received.write(self._portions.popleft()[0])
        try:
            self._ssl.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
            if self._portions:
                self._queued = True
                self._handshakes.due(self)
            else:
                self._below.resume_reading()
        except ssl.SSLError as error:
            self.refuse(_reason(error))
        else:
            self._flush()
            self._ready = True
            self._handshakes.end(self)
            self._below.resume_reading()
            self._app.connection_made(self)
            self._read([(b"", 0), *self._portions])
            self._portions.clear()

    @property
    def waits_for_us(self) -> bool:
        """True if it is our turn in the handshake."""
        return self._queued

    def refuse(self, why: str) -> None:
        """Log the reason and close, after sending OpenSSL's alert if there is one."""
        self._handshakes.refused(self._below.get_extra_info("peername"), why)
        self._flush()
        self._ended = True
        self._below.close()

    # ---- data

    def _read(self, portions: Iterable[tuple[bytes, int]]) -> None:
        pieces: list[bytes] = []
        ended = False
        try:
            for portion, records in portions:
                before = len(pieces)
                for start in range(0, max(len(portion), 1), RECORD_BYTES):
                    self._received.write(portion[start:start + RECORD_BYTES])
                    ended = self._decrypt(pieces)
                    if ended:
                        break
                if ended:
                    break
                if self._records.too_many_empty(records, len(pieces) - before):
                    self.refuse("it sends too many TLS records without data")
                    return
        except ssl.SSLError as error:
            self.refuse(_reason(error))
            return
        self._flush()                           # OpenSSL may have to answer by itself
        if data := pieces[0] if len(pieces) == 1 else b"".join(pieces):
            self._app.data_received(data)
        if ended:
            self._input_ended()

    def _decrypt(self, pieces: list[bytes]) -> bool:
        """Append the data of all complete records; returns whether close_notify was among them.

        Raises SSLError.
        """
        try:
            while piece := self._ssl.read(RECORD_BYTES):
                pieces.append(piece)
                if not self._received.pending and not self._ssl.pending():
                    return False
        except ssl.SSLWantReadError:
            return False
        return True

    def _input_ended(self) -> None:
        if not self._end_of_input:
            self._end_of_input = True
            if not self._app.eof_received():
                self.close()

    def _flush(self) -> None:
        if self._to_send.pending:
            self._below.write(self._to_send.read())

    def _say_goodbye(self) -> None:
        if not self._ended:
            self._ended = True
            with contextlib.suppress(ssl.SSLError):     # the other side has not sent its close_notify, for example
                self._ssl.unwrap()
            self._flush()

    # ---- asyncio.Transport: what the protocol above does

    def write(self, data: bytes | bytearray | memoryview[Any]) -> None:
        if self._ended or not data:
            return
        try:
            if len(data) <= RECORD_BYTES:
                self._ssl.write(data)
                self._below.write(self._to_send.read())
            else:
                self._below.writelines(self._encrypted(memoryview(data)))
        except ssl.SSLError as error:
            self.refuse(_reason(error))

    def _encrypted(self, data: memoryview) -> list[bytes]:
        """Return the data encrypted, a record at a time."""
        records: list[bytes] = []
        sent = 0
        while sent < len(data):
            sent += self._ssl.write(data[sent:sent + RECORD_BYTES])
            records.append(self._to_send.read())
        return records

    def get_write_buffer_size(self) -> int:
        """Bytes written that the kernel has not accepted yet."""
        return self._below.get_write_buffer_size()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        self._below.set_write_buffer_limits(high, low)

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """As asyncio's TLS: "ssl_object" and "sslcontext" (by which aiohttp knows https), and what the socket has.

        "incomplete_bytes": of a record that has begun, which OpenSSL holds until it is complete.
        """
        if name == "sslcontext":
            return self._ssl.context
        if name == "incomplete_bytes":
            return self._records.incomplete_bytes
        return self._ssl if name == "ssl_object" else self._below.get_extra_info(name, default)

    def is_closing(self) -> bool:
        return self._ended

    def pause_reading(self) -> None:
        self._below.pause_reading()

    def resume_reading(self) -> None:
        self._below.resume_reading()

    def write_eof(self) -> None:
        """Close the sending direction; what still arrives is dropped."""
        self._say_goodbye()
        self._below.write_eof()

    def close(self) -> None:
        """Close once everything is sent."""
        self._say_goodbye()
        self._below.close()

    def abort(self) -> None:
        self._ended = True
        self._below.abort()


def certificate_names(transport: asyncio.BaseTransport) -> list[str]:
    """The DNS names in the certificate of the other side of a TlsTransport."""
    certificate = transport.get_extra_info("ssl_object").getpeercert() or {}
    return [value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"]


_VERIFY_REASONS = {             # X509_V_ERR_..
    9: "it is not valid yet (compare the clocks)",
    10: "it has expired",
    18: "it is signed by itself, not by tls.ca",
    19: "it is not signed by tls.ca",
    20: "it is not signed by tls.ca",
    21: "it is not signed by tls.ca",
    26: "it is made for another purpose (its extended key usage)",
}
_REASONS = {
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": "it shows no certificate",
    "UNSUPPORTED_PROTOCOL": "it speaks no version of TLS that is good enough",
    "NO_SHARED_CIPHER": "it knows no cipher that is good enough",
}


def _reason(error: ssl.SSLError) -> str:
    """A description of the error for the log."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {_VERIFY_REASONS.get(error.verify_code, error.verify_message)}"
    reason = error.reason or str(error)
    _, alert, what = reason.partition("_ALERT_")
    if alert:
        return f"it ended TLS, saying: {what.lower().replace('_', ' ')}"
    return _REASONS.get(reason, f"TLS failed: {reason.lower().replace('_', ' ')}")
