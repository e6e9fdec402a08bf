"""What the grammar makes of a line: a request, or a head, behind which data must be read before there is one."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from msgspec import Struct
from msgspec.structs import replace

from core import Change, Get, Move, Put, PutWith
from gateway.protocol import requests

Words = list[bytes]


class PutHead(Struct, gc=False, frozen=True):
    """The line of a PUT as the original has it, whose data follow."""

    length: int
    queue: str
    priority: int
    item: str | None
    new_item: bool
    wait: Get | None

    def with_data(self, data: bytes) -> Put | requests.PutWait:
        """The request, now that its data are here."""
        put = Put(self.queue, self.priority, data, self.item, self.new_item)
        return put if self.wait is None else requests.PutWait(put, self.wait)


class DataHead(Struct, gc=False, frozen=True):
    """Any other line whose data follow: `request` is complete but for these."""

    length: int
    request: PutWith | requests.PutWait | Change | Move

    def with_data(self, data: bytes) -> PutWith | requests.PutWait | Change | Move:
        """The request, now that its data are here."""
        request = self.request
        if isinstance(request, PutWith):
            return _filled(request, data)
        if not isinstance(request, requests.PutWait):
            return replace(request, data=data)
        put = request.put
        return replace(request, put=_filled(put, data) if isinstance(put, PutWith) else replace(put, data=data))


def _filled(put: PutWith, data: bytes) -> PutWith:
    return replace(put, put=replace(put.put, data=data))


class NumberedHead(Struct, gc=False, frozen=True):
    """A line with REQ before it whose data follow. `digest` has the words in it, and gets the data."""

    length: int
    number: int
    digest: blake2b
    head: PutHead | DataHead

    def with_data(self, data: bytes) -> requests.Numbered:
        """The request, now that its data are here."""
        self.digest.update(data)
        return requests.Numbered(self.number, self.digest.digest(), self.head.with_data(data))


class PutsHead(Struct, gc=False, frozen=True):
    """The line of a PUTS: `count` times the arguments of a PUT in a line and its data follow.

    With REQ it has a `number`, and the `digest` of its line, to which all that follows comes. `answer`: nothing of it
    is executed, and this is said when it has been read.
    """

    count: int
    number: int = 0
    digest: blake2b | None = None
    answer: bytes | None = None


class CloneHead(Struct, gc=False, frozen=True):
    """The line of a CLONE, whose data follow `start`."""

    start: requests.CloneStart


class SkipHead(Struct, gc=False, frozen=True):
    """A line whose data are read and dropped before `answer` is given."""

    length: int
    answer: bytes


Head = PutHead | DataHead | NumberedHead | PutsHead | CloneHead | SkipHead

Parse = Callable[[Words], requests.Command | Head]
