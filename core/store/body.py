"""The data of a job: bytes, or a holder of many, which need not be in memory.

A holder goes with its job through all states, so a job that is large costs its record wherever it is. It is gone with
the last job, or step that may be undone, that has it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, final

from msgspec import Struct

if TYPE_CHECKING:
    Data: TypeAlias = "bytes | Body"
else:
    Data = Any      # msgspec decodes no such union, and what is decoded has bytes


class BodyKeeper(Protocol):
    """Where bodies are kept: PagedBodies in core/pages, which says how."""

    def read(self, held: Held) -> bytes:
        """The bytes. Raises PageLost."""

    def gone(self, held: Held) -> None:
        """No job has them any more. This may be called in the middle of anything."""

    def waits(self, held: Held, queue: str) -> None:
        """A job with them becomes READY or DELAYED in this queue."""

    def leaves(self, held: Held, queue: str) -> None:
        """Undo `waits`."""

    def reference(self, held: Held) -> bytes | None:
        """By what a later process finds them again; None: they are in memory."""


class Held(Struct, gc=False, eq=False):
    """What the keeper knows of a body. Not tracked by the garbage collector; job.py says why."""

    serial: int                 # rises
    length: int
    data: bytes | None          # None: they are outside memory,
    page: int = 0               # in this page
    queue: str | None = None            # where a job with them waits,
    queues: dict[str, int] | None = None    # or how many do in each, if several share them


@final
class Body(Struct, gc=False, eq=False):
    """The data of a job that may leave memory. It must not be copied: the end of the object is the end of the body."""

    _keeper: BodyKeeper
    _held: Held

    def __len__(self) -> int:
        return self._held.length

    def __eq__(self, other: object) -> bool:
        """Whether the bytes are the same: the job in memory may be compared with itself as a page has it."""
        if self is other:
            return True
        return isinstance(other, Body | bytes) and len(other) == len(self) and bytes_of(other) == bytes_of(self)

    __hash__ = None     # type: ignore[assignment]  # it would have to read the bytes

    def __del__(self) -> None:
        self._keeper.gone(self._held)

    def read(self) -> bytes:
        """The bytes. Raises PageLost."""
        data = self._held.data
        return self._keeper.read(self._held) if data is None else data

    def waits(self, queue: str) -> None:
        """A job with this body becomes READY or DELAYED in this queue."""
        self._keeper.waits(self._held, queue)

    def leaves(self, queue: str) -> None:
        """Undo `waits`."""
        self._keeper.leaves(self._held, queue)

    @property
    def reference(self) -> bytes | None:
        """By what a later process finds the body again; None: it is in memory."""
        return self._keeper.reference(self._held)


def bytes_of(data: Data) -> bytes:
    """The bytes, wherever they are. Raises PageLost."""
    return data.read() if type(data) is Body else data
