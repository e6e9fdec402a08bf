"""Sends one request, and bounds what a receiver can do with it: by time, by bytes, by address.

aiohttp does the HTTP: its connector takes a resolver and a maker of sockets, so a name is resolved once for each
connection and judged before anything is dialled, with TLS and `Host` still for the name. With httpx the same is
possible one layer below, in httpcore, but with 50 requests at a time one costs 1,500 us of processor time, not 42.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from io import BytesIO
from types import TracebackType

from aiohttp import (
    ClientConnectorCertificateError,
    ClientConnectorDNSError,
    ClientConnectorError,
    ClientConnectorSSLError,
    ClientError,
    ClientResponse,
    ClientResponseError,
    ClientSession,
    ClientTimeout,
    ConnectionTimeoutError,
    DummyCookieJar,
    InvalidURL,
    TCPConnector,
)

from sockpq_http.push.answers import Answer, Failure
from sockpq_http.push.configuration import Target
from sockpq_http.push.guard import AddressRule, Guard, Lookup, RefusedAddress

HEADERS_MAX = 128               # of an answer, each with at most:
HEADER_BYTES_MAX = 8190
IDLE_S = 3.0                    # a connection is used again within; common servers close idle ones after 5 s
# What is read of a body on which nothing depends, so that its connection can be used again; else it is closed.
REST_S, REST_BYTES_MAX = 1.0, 65_536
WHOLE_BYTES_MAX = 1 << 20       # larger bodies are sent in pieces, so that they do not hold up the event loop
TEXT_MAX = 500                  # of an error's text, which may quote the receiver


class Sender:
    """Sends the requests of one target, over connections that it keeps: `async with Sender(..) as sender`."""

    def __init__(self, target: Target, proxy: str | None = None, lookup: Lookup | None = None) -> None:
        """`proxy`: its URL; it must judge addresses itself. `lookup`: DNS by default. Raises OSError for ca_file."""
        self._target = target
        self._proxy = proxy
        self._tls = ssl.create_default_context(cafile=target.ca_file)
        self._guard = Guard(None if proxy else AddressRule(target.allow), lookup)
        self._session: ClientSession | None = None

    async def __aenter__(self) -> Sender:
        self._session = ClientSession(
            connector=TCPConnector(
                resolver=self._guard, socket_factory=self._guard.socket, use_dns_cache=False, limit=0,
                keepalive_timeout=IDLE_S, ssl=self._tls,
            ),
            cookie_jar=DummyCookieJar(), auto_decompress=False, trust_env=False,
            timeout=ClientTimeout(total=None, sock_connect=self._target.connect_timeout_s),
            max_headers=HEADERS_MAX, max_line_size=HEADER_BYTES_MAX, max_field_size=HEADER_BYTES_MAX,
        )
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._session is not None:
            await self._session.close()
        await self._guard.close()

    async def send(self, headers: Mapping[str, str], body: bytes) -> Answer | Failure:
        """POST this; every way in which that can fail is a Failure."""
        response: ClientResponse | None = None
        try:
            async with asyncio.timeout(self._target.timeout_s):
                response = await self._post(headers, body)
                if 200 <= response.status < 300 and self._target.result:
                    return _answer(response, *await _read_body(response, self._target.answer_bytes_max))
            return await _read_rest(response)
        except ConnectionTimeoutError:
            return Failure("timeout", f"no connection within {self._target.connect_timeout_s:g} s")
        except TimeoutError:
            return Failure("timeout", f"no whole answer within {self._target.timeout_s:g} s")
        except (ClientError, OSError, ValueError) as error:
            return failure_of(error)
        finally:
            if response is not None:
                response.close()    # has no effect on one that was read to its end: its connection is kept

    async def _post(self, headers: Mapping[str, str], body: bytes) -> ClientResponse:
        assert self._session is not None
        return await self._session.post(
            self._target.url, data=body if len(body) <= WHOLE_BYTES_MAX else BytesIO(body), headers=headers,
            allow_redirects=False, proxy=self._proxy,
        )


def _answer(response: ClientResponse, body: bytes, whole: bool) -> Answer:
    return Answer(response.status, response.headers.get("Retry-After"), body, whole)


async def _read_rest(response: ClientResponse) -> Answer:
    """Read the rest of an answer that is decided by its status: for the text of an error, or to free the connection."""
    try:
        async with asyncio.timeout(REST_S):
            body, whole = await _read_body(response, REST_BYTES_MAX)
    except (TimeoutError, ClientError, OSError):
        body, whole = b"", False
    return _answer(response, body, whole)


async def _read_body(response: ClientResponse, bytes_max: int) -> tuple[bytes, bool]:
    """Return the body, and whether that is all; no more than `bytes_max` of it."""
    parts: list[bytes] = []
    left = bytes_max
    async for part in response.content.iter_any():
        parts.append(part[:left])
        if len(part) > left:
            return b"".join(parts), False
        left -= len(part)
    return b"".join(parts), True


def failure_of(error: Exception) -> Failure:
    """Return the kind of an error of a request: a word, and a text without the address, which may contain a secret."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, RefusedAddress):
            return Failure("refused_address", str(cause))
        cause = cause.__cause__
    text = str(error) or type(error).__name__
    match error:
        case ClientConnectorCertificateError() | ClientConnectorSSLError() | ssl.SSLError():
            reason = "tls"
        case ClientConnectorDNSError():
            reason = "dns"
        case ClientConnectorError():
            reason = "connect"
        case ClientResponseError():
            reason, text = "bad_answer", f"not HTTP: {error.message}"
        case InvalidURL() | ValueError():
            reason, text = "bad_request", "the HTTP library refuses the address or a header of the request"
        case _:
            reason = "closed"
    return Failure(reason, text[:TEXT_MAX].replace("\0", "?"))
