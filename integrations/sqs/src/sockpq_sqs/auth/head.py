"""The head of an HTTP request: everything that identifies its sender, except the body."""

from __future__ import annotations

from msgspec import Struct
from multidict import CIMultiDictProxy


class Head(Struct, frozen=True):
    """Method, path and query as they were sent (without decoding), headers, and whether the connection is secure."""

    method: str
    path: str
    query: str
    headers: CIMultiDictProxy[str]
    secure: bool

    def header(self, name: str) -> str:
        """Return the value of this header, "" without one."""
        return self.headers.get(name, "")
