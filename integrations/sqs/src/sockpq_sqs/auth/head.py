"""The head of an HTTP request: all that is needed to find out who sent it, but the body."""

from __future__ import annotations

from msgspec import Struct
from multidict import CIMultiDictProxy


class Head(Struct, frozen=True):
    """Method, path and query as they were sent (without decoding), headers, and whether nobody could overhear it."""

    method: str
    path: str
    query: str
    headers: CIMultiDictProxy[str]
    secure: bool

    def header(self, name: str) -> str:
        """Return the value of this header, "" without one."""
        return self.headers.get(name, "")
