"""What the grammar makes of a line: a request, or a head, behind which data must be read before there is one."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import blake2b

from msgspec import Struct

from core import Get, Put
from gateway import requests

Words = list[bytes]


class PutHead(Struct, gc=False, frozen=True):
    """The line of a PUT, whose data follow."""

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


class NumberedPutHead(Struct, gc=False, frozen=True):
    """The line of a PUT with REQ before it. `digest` has the words in it, and gets the data."""

    length: int
    number: int
    digest: blake2b
    put: PutHead

    def with_data(self, data: bytes) -> requests.Numbered:
        """The request, now that its data are here."""
        self.digest.update(data)
        return requests.Numbered(self.number, self.digest.digest(), self.put.with_data(data))


class CloneHead(Struct, gc=False, frozen=True):
    """The line of a CLONE, whose data follow `start`."""

    start: requests.CloneStart


class SkipHead(Struct, gc=False, frozen=True):
    """A line whose data are read and dropped before `answer` is given."""

    length: int
    answer: bytes


Head = PutHead | NumberedPutHead | CloneHead | SkipHead

Parse = Callable[[Words], requests.Command | Head]
