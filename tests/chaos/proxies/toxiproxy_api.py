"""The package toxiproxy-python, made fit for several servers in one process and for servers that do not answer.

The package has one address for the whole process and waits for ever. So what it takes for `requests` is replaced by an
object that sends each thread's calls to the server that thread named last, and gives up after a while. Each call has a
connection of its own: the server ends idle ones, and a call that meets this is neither done nor refused.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import requests
import toxiproxy.api
from toxiproxy.api import APIConsumer

TIMEOUT_S = 3.0         # a toxic cannot be changed while a receiver that does not read has all buffers full


class ToxiproxyError(Exception):
    """The server refused, or did not answer."""


class NoAnswerError(ToxiproxyError):
    """The server did not answer in time; the request may take effect later."""


class _Calls(threading.local):
    """Replaces the module `requests` inside the package."""

    def __init__(self) -> None:
        self.server = ""                                # "host:port" of the present call
        self._session = requests.Session()
        self._session.trust_env = False                 # no proxy on the way to the proxy
        self._session.headers["Connection"] = "close"

    def _call(self, method: str, url: str, **arguments: Any) -> requests.Response:
        url = f"http://{self.server}{urlsplit(url).path}"
        try:
            response = self._session.request(method, url, timeout=TIMEOUT_S, **arguments)
        except requests.Timeout as error:
            raise NoAnswerError(f"{method} {url}: no answer within {TIMEOUT_S:g} s") from error
        except requests.RequestException as error:
            raise ToxiproxyError(f"{method} {url}: {error}") from error
        if response.status_code >= 500:
            raise ToxiproxyError(f"{method} {url}: {response.status_code} {response.text}")
        return response

    def get(self, url: str, **arguments: Any) -> requests.Response:
        return self._call("GET", url, **arguments)

    def post(self, url: str, **arguments: Any) -> requests.Response:
        return self._call("POST", url, **arguments)

    def delete(self, url: str, **arguments: Any) -> requests.Response:
        return self._call("DELETE", url, **arguments)


_calls = _Calls()
toxiproxy.api.requests = _calls


def update_toxic(proxy: str, name: str, **attributes: int) -> None:
    """Change a toxic in its place; the package has no call for it."""
    APIConsumer.post(f"/proxies/{proxy}/toxics/{name}", json={"attributes": attributes})


@contextlib.contextmanager
def calls_to(server: str) -> Iterator[None]:
    """Send the package's calls of this thread to `server` within the block; raises ToxiproxyError."""
    _calls.server = server
    try:
        yield
    except (toxiproxy.exceptions.ProxyExists, toxiproxy.exceptions.NotFound,
            toxiproxy.exceptions.InvalidToxic) as error:
        raise ToxiproxyError(str(error)) from error
