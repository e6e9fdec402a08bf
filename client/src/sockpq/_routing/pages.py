"""The pages of a search for jobs, of one cluster after the other."""

from __future__ import annotations

from sockpq._protocol.commands.records import Page, Search
from sockpq._routing.router import Router
from sockpq._routing.routes import Route
from sockpq._routing.values import labelled
from sockpq.model import FoundJob


class Pages:
    """A search in progress. For one thread or task at a time."""

    def __init__(self, router: Router, search: Search, server: str | None, timeout: float | None) -> None:
        """`server`: the only one to ask; `timeout`: of each page, in seconds."""
        self._router = router
        self._search = search
        self._server = server
        self._timeout = timeout
        self._cursor: str | None = None
        self._names = tuple(search.queues.split("|"))
        self._left: list[Route] | None = None       # the clusters that were not searched to the end
        self._over = False

    async def next(self) -> list[FoundJob] | None:
        """Return the jobs of the next page, which may be none; None at the end."""
        if self._over:
            return None
        if self._server is not None:
            page: Page = await self._router.run_where(
                self._search.page(self._cursor), self._server, timeout=self._timeout)
            self._cursor, self._over = page.cursor, page.cursor is None
            return page.jobs
        first = self._left is None
        left = self._left = self._left or list(await self._router.sources(self._names))
        route = left[0]
        page = await route.executor.run(self._search.page(self._cursor), timeout=self._timeout)
        if first:
            self._left = list(await self._router.sources(self._names))
            if self._left != left:          # the first connection has shown that there is a map
                return []
        self._cursor = page.cursor
        if page.cursor is None:
            left.pop(0)
            self._left, self._over = left, not left
        jobs: list[FoundJob] = labelled(page.jobs, route.name, route.tag)
        return jobs
