"""The chunks of a CLONE in progress, in order, outside memory where there is room for them."""

from __future__ import annotations

from collections.abc import Iterator

from sockpqd.core.pages.page_space import PageSpace
from sockpqd.core.pages.pages import Pages


class CloneBuffer:
    """Chunks that are appended one by one, and read from the start or dropped all together."""

    __slots__ = ("_chunks", "_space")

    def __init__(self, pages: Pages | None) -> None:
        """`pages`: the pages next to which the chunks are kept, in their own space; None: all stay in memory."""
        self._space: PageSpace | None = None if pages is None else pages.another_space()
        self._chunks: list[bytes | int] = []            # a number: of the page

    def add(self, data: bytes) -> None:
        """Append a chunk, in memory if the store is full."""
        number = None if self._space is None else self._space.put(data)
        self._chunks.append(data if number is None else number)

    def __iter__(self) -> Iterator[bytes]:
        """Iterate over the chunks in order. Raises PageLost."""
        for chunk in self._chunks:
            if isinstance(chunk, int):
                assert self._space is not None
                yield self._space.get(chunk)
            else:
                yield chunk

    def drop(self) -> None:
        """Drop all chunks and their space."""
        self._chunks.clear()
        if self._space is not None:
            self._space.drop()
            self._space = None
