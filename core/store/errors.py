"""The texts that workers leave with jobs that failed (LATER and BURY .. ERROR, spec/state-machine 8.7).

A job refers to its text by a number (Extras.error), and later texts have greater numbers. The texts of a queue's jobs
are in one list, the oldest first, so that texts beyond its ERRORBYTES can be dropped without looking up their jobs,
which keep a dangling number. Texts without a job, or beyond the limit, are dropped only at the end of an entry. So a
text follows its job through all states, and survives the undoing of a batch, without undo steps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from msgspec import Struct, field
from sortedcontainers import SortedList

from sockpqd.core import limits
from sockpqd.core.ops.settings import QueueSettings, error_bytes_of
from sockpqd.core.store.body import Data


class ErrorText(Struct, gc=False, eq=False):
    """One error text. `queue`: the queue of its job; `held`: a job refers to it."""

    data: Data
    queue: str
    held: bool = False


class QueueTexts(Struct, gc=False, eq=False):
    """The error texts of one queue."""

    numbers: SortedList = field(default_factory=SortedList)
    data_bytes: int = 0


class ErrorTexts:
    """All error texts by their number."""

    __slots__ = ("_by_number", "_grown", "_left", "_listed", "_of_queue")

    def __init__(self) -> None:
        self._by_number: dict[int, ErrorText] = {}
        self._of_queue: dict[str, QueueTexts] = {}
        self._left: dict[int, None] = {}            # texts that may no longer have a job,
        self._grown: dict[str, None] = {}           # queues that may have too much,
        self._listed = 0                            # and texts that have come into one since the last entry

    def __iter__(self) -> Iterator[tuple[int, Data]]:
        """Yield the number and the data of each text, in rising order of the numbers."""
        return ((number, self._by_number[number].data) for number in sorted(self._by_number))

    def add(self, number: int, data: Data, queue: str) -> None:
        """Add a text for a job of the queue that is between two states: see `attach`."""
        if number in self._by_number:               # of a batch that was undone, which had the same numbers
            self._remove(number)
        self._by_number[number] = ErrorText(data, queue)
        self._left[number] = None
        self._list(number)

    def find(self, number: int | None) -> Data | None:
        """Return the text of this number; None if there is none, or it was dropped."""
        text = None if number is None else self._by_number.get(number)
        return None if text is None else text.data

    def attach(self, number: int, queue: str) -> None:
        """Record that the job with this text has entered a state in this queue, its old one or another."""
        text = self._by_number.get(number)
        if text is None:
            return
        text.held = True
        if text.queue != queue:
            self._unlist(number)
            text.queue = queue
            self._list(number)

    def detach(self, number: int) -> None:
        """Record that the job with this text has left its state; it may be in another one before the entry ends."""
        text = self._by_number.get(number)
        if text is not None:
            text.held = False
            self._left[number] = None

    def look_at(self, queue: str) -> None:
        """Check the queue again after its limit has changed."""
        if queue in self._of_queue:
            self._grown[queue] = None

    def settle(self, settings: Mapping[str, QueueSettings]) -> None:
        """Drop texts without a job, and a limited number of those beyond the limits of their queues."""
        for number in self._left:
            text = self._by_number.get(number)
            if text is not None and not text.held:
                self._remove(number)
        self._left.clear()
        left = limits.ERRORS_DROPPED_MAX + 2 * self._listed
        self._listed = 0
        for queue in sorted(self._grown):
            texts, most = self._of_queue.get(queue), error_bytes_of(settings, queue)
            while texts is not None and texts.data_bytes > most and left:
                self._remove(texts.numbers[0])
                texts = self._of_queue.get(queue)
                left -= 1
            if texts is None or texts.data_bytes <= most:
                del self._grown[queue]

    def restore(self, number: int, data: Data, queue: str) -> None:
        """Add a text of a job that is in the queue; see `end_restore`."""
        self._by_number[number] = ErrorText(data, queue, held=True)
        self._list(number)

    def end_restore(self, settings: Mapping[str, QueueSettings]) -> None:
        """Finish restoring: texts beyond a limit are dropped with the next entry, as they would have been."""
        self._listed = 0
        self._left.clear()
        self._grown = {
            queue: None for queue, texts in self._of_queue.items()
            if texts.data_bytes > error_bytes_of(settings, queue)
        }

    @property
    def pending(self) -> bool:
        """True if the next entry has texts to drop."""
        return bool(self._grown or self._left)

    def bytes_of(self, queue: str) -> int:
        """Return the bytes of all texts of the queue."""
        texts = self._of_queue.get(queue)
        return 0 if texts is None else texts.data_bytes

    def _remove(self, number: int) -> None:
        self._unlist(number)
        del self._by_number[number]

    def _list(self, number: int) -> None:
        text = self._by_number[number]
        texts = self._of_queue.get(text.queue)
        if texts is None:
            texts = self._of_queue[text.queue] = QueueTexts()
        texts.numbers.add(number)
        texts.data_bytes += len(text.data)
        self._grown[text.queue] = None
        self._listed += 1

    def _unlist(self, number: int) -> None:
        text = self._by_number[number]
        texts = self._of_queue[text.queue]
        texts.numbers.remove(number)
        texts.data_bytes -= len(text.data)
        if not texts.numbers:
            del self._of_queue[text.queue]
