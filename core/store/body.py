"""The data of a job: bytes, or a holder of large data, which need not be in memory.

A holder stays with its job through all states, so a large job costs only its record in any of them. The data are
released with the last job, or undo step, that refers to them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, final

from msgspec import Struct

if TYPE_CHECKING:
    Data: TypeAlias = "bytes | Body"
else:
    Data = Any      # msgspec decodes no such union, and what is decoded has bytes


class BodyKeeper(Protocol):
    """The keeper of large bodies: PagedBodies in core/pages, which explains it."""

    def read(self, held: Held) -> bytes:
        """Return the bytes, from memory or disk. Raises PageLost."""

    def gone(self, held: Held) -> None:
        """Record that no job refers to the data any longer. May be called in the middle of any other code."""

    def waits(self, held: Held, queue: str) -> None:
        """Record that a job with these data becomes READY or DELAYED in this queue."""

    def leaves(self, held: Held, queue: str) -> None:
        """Undo one call of `waits`."""

    def reference(self, held: Held) -> bytes | None:
        """Return the reference by which a later process finds them; None if they are in memory."""


class Held(Struct, gc=False, eq=False):
    """The keeper's record of a body. Not tracked by the garbage collector; job.py says why."""

    serial: int                 # rises
    length: int
    data: bytes | None          # None: they are outside memory,
    page: int = 0               # in this page
    queue: str | None = None            # where a job with them waits,
    queues: dict[str, int] | None = None    # or how many do in each, if several share them


@final
class Body(Struct, gc=False, eq=False):
    """The data of a job that may leave memory. Must not be copied: the body is released with this object."""

    _keeper: BodyKeeper
    _held: Held

    def __len__(self) -> int:
        return self._held.length

    def __eq__(self, other: object) -> bool:
        """Return whether the bytes are equal, as a job in memory may be compared with its copy in a page."""
        if self is other:
            return True
        return isinstance(other, Body | bytes) and len(other) == len(self) and bytes_of(other) == bytes_of(self)

    __hash__ = None     # type: ignore[assignment]  # it would have to read the bytes

    def __del__(self) -> None:
        self._keeper.gone(self._held)

    def read(self) -> bytes:
        """Return the bytes, from memory or disk. Raises PageLost."""
        data = self._held.data
        return self._keeper.read(self._held) if data is None else data

    def waits(self, queue: str) -> None:
        """Record that a job with this body becomes READY or DELAYED in this queue."""
        self._keeper.waits(self._held, queue)

    def leaves(self, queue: str) -> None:
        """Undo one call of `waits`."""
        self._keeper.leaves(self._held, queue)

    @property
    def reference(self) -> bytes | None:
        """The reference by which a later process finds the body; None if it is in memory."""
        return self._keeper.reference(self._held)


def bytes_of(data: Data) -> bytes:
    """Return the bytes of a job's data, from memory or disk. Raises PageLost."""
    return data.read() if type(data) is Body else data
