"""A TLS 1.3 client that floods a server with KeyUpdates: Python's ssl cannot, so OpenSSL is called itself."""

from __future__ import annotations

import _ssl
import ctypes
from typing import Any

OUT_BYTES = 1 << 20
REQUESTED = 1               # SSL_KEY_UPDATE_REQUESTED: the other side has to change its keys, too


class KeyUpdater:
    """The client's end of one TLS connection, in memory. Nothing of the server is checked."""

    def __init__(self) -> None:
        self._ssl, self._crypto = _library(), _library()
        for library, names in ((self._ssl, ("TLS_client_method", "SSL_CTX_new", "SSL_new")),
                               (self._crypto, ("BIO_new", "BIO_s_mem"))):
            for name in names:
                getattr(library, name).restype = ctypes.c_void_p
        self._context = self._pointer(self._ssl.SSL_CTX_new(self._pointer(self._ssl.TLS_client_method())))
        self._connection = self._pointer(self._ssl.SSL_new(self._context))
        self._received, self._to_send = (
            self._pointer(self._crypto.BIO_new(self._pointer(self._crypto.BIO_s_mem()))) for _ in range(2))
        self._ssl.SSL_set_bio(self._connection, self._received, self._to_send)
        self._ssl.SSL_set_connect_state(self._connection)
        self._buffer = ctypes.create_string_buffer(OUT_BYTES)

    @staticmethod
    def _pointer(value: int) -> ctypes.c_void_p:
        assert value
        return ctypes.c_void_p(value)

    def handshake(self, received: bytes = b"") -> tuple[bool, bytes]:
        """Continue the handshake; returns whether it is complete, and what must be sent."""
        self._crypto.BIO_write(self._received, received, len(received))
        complete = self._ssl.SSL_do_handshake(self._connection) == 1
        return complete, self._out()

    def updates(self, count: int) -> bytes:
        """This many KeyUpdates, each of which asks for one in return."""
        for _ in range(count):
            self._ssl.SSL_key_update(self._connection, REQUESTED)
            assert self._ssl.SSL_do_handshake(self._connection) == 1
        return self._out()

    def write(self, data: bytes) -> bytes:
        """Return the record with this data."""
        assert self._ssl.SSL_write(self._connection, data, len(data)) == len(data)
        return self._out()

    def close(self) -> None:
        """Free it, which is not automatic."""
        self._ssl.SSL_free(self._connection)
        self._ssl.SSL_CTX_free(self._context)

    def _out(self) -> bytes:
        taken = b""
        while (count := self._crypto.BIO_read(self._to_send, self._buffer, OUT_BYTES)) > 0:
            taken += self._buffer.raw[:count]
        return taken


def _library() -> Any:
    """Return the OpenSSL that Python's ssl uses: libraries that _ssl was linked with are searched through it."""
    return ctypes.CDLL(_ssl.__file__)
