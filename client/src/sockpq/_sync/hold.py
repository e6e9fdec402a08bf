"""A hold of an item around a block that puts its jobs."""

# Made from _async/hold.py by client/tools/faces.py: edit there.

from __future__ import annotations

import os
from types import TracebackType
from typing import TypeVar

from sockpq._backends.sync import run
from sockpq._process import check_own, is_inherited
from sockpq._protocol.arguments import HoldThen
from sockpq._protocol.command import Command
from sockpq._protocol.commands import items
from sockpq._routing.router import Router
from sockpq.errors import ItemNotFound, ItemNotHeld, SockpqError

T = TypeVar("T")


class Hold:
    """Holds an item: `with client.hold() as item: client.put("pages", data, item=item)`.

    The end of the block releases it; an exception cancels the item first, so that no incomplete batch is left. `item`:
    its name, in the block; `ended`: whether the item has ended with the block.
    """

    __slots__ = ("_expire", "_process", "_queue", "_router", "_then", "_timeout", "ended", "item")

    def __init__(
        self, router: Router, item: str | None, expire: float | None, then: HoldThen | None,
        queue: str | None, timeout: float | None,
    ) -> None:
        self._router = router
        self._process = os.getpid()
        self._expire = expire
        self._then = then
        self._queue = queue
        self._timeout = timeout
        self.item = item
        self.ended = False

    def __enter__(self) -> str:
        check_own(self._process, "this hold")
        command = items.item_hold(self.item, expire=self._expire, then=self._then, queue=self._queue)
        self.item = run(self._router.run(command, timeout=self._timeout))
        return self.item

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if is_inherited(self._process) or self.item is None:        # the parent says how its batch went
            return
        try:
            if error is not None:
                run(self._router.run(self._there(items.item_cancel(self.item)), timeout=self._timeout))
            self.ended = run(self._router.run(
                self._there(items.item_release(self.item)), timeout=self._timeout
            ))
        except SockpqError as failure:
            if error is None:
                raise
            if not isinstance(failure, ItemNotFound | ItemNotHeld):        # else it has ended before
                error.add_note(f"and the item {self.item} could not be cancelled: {failure}")

    def _there(self, command: Command[T]) -> Command[T]:
        """Return the command, addressed to the cluster that has the hold."""
        return command._replace(place=self._queue or "")

    def __repr__(self) -> str:
        return f"<Hold of {self.item or 'a new item'!r}>"
