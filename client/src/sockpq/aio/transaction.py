"""A transaction of the asyncio client."""

from __future__ import annotations

from types import TracebackType

from sockpq.transaction import Collected


class Transaction(Collected):
    """`async with client.transaction() as t: t.done(job); t.put("next", data)`; the methods only collect."""

    async def __aenter__(self) -> Transaction:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None:
            await self._commit()
        self._over = True
