"""Workers: pools of worker processes, each known by its name while its session lasts (spec/state-machine 11).

An operator's settings that a pool has not received yet outlive its session: they are kept for a while, for the next
pool of that name.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct
from sortedcontainers import SortedDict

from sockpqd.core import limits
from sockpqd.core.ops.workers import WorkerState
from sockpqd.core.sessions.session import Session


class WorkerPool(Struct, gc=False, eq=False):
    """One pool with its last report and the operator's settings for it."""

    name: str
    session: int                        # 0: it has ended, and an operator's wishes are left for the next of its name
    address: str
    slots: int
    busy: int
    beat_ms: int                        # when its last heartbeat came, or its session ended
    most: int | None = None
    least: int | None = None
    state: WorkerState = WorkerState.RUN
    unheard: bool = False               # an operator has changed its wishes since its last heartbeat


class Workers:
    """All workers by name, and by session."""

    __slots__ = ("_of_session", "_of_user", "_sessions", "by_name", "left")

    def __init__(self, sessions: Mapping[int, Session]) -> None:
        """`sessions`: by number; contains the session of each worker."""
        self.by_name: dict[str, WorkerPool] = SortedDict()
        self.left: dict[str, WorkerPool] = {}                   # by name, those without a session
        self._sessions = sessions
        self._of_session: dict[int, dict[str, None]] = {}       # names by session
        self._of_user: dict[str, int] = {}                      # how many each user has, but for ""

    def room(self, user: str) -> bool:
        """Return whether a user may have another worker: at most half of those that other users leave.

        Without users, WORKERS_MAX is the limit.
        """
        count = len(self.by_name)
        owned = self._of_user.get(user, 0)
        return count < limits.WORKERS_MAX and (not user or owned * 2 < limits.WORKERS_MAX - (count - owned))

    def find(self, name: str, clock_ms: int) -> WorkerPool | None:
        """Return the pool of this name, or the operator's settings kept for one that ended recently."""
        worker = self.by_name.get(name) or self.left.get(name)
        return None if worker is None or _is_over(worker, clock_ms) else worker

    def add(self, worker: WorkerPool) -> None:
        """Add a worker with a new name or, if it has no session, one that has ended."""
        if not worker.session:
            self.left[worker.name] = worker
            return
        self.left.pop(worker.name, None)
        self.by_name[worker.name] = worker
        self._enter(worker)

    def claim(self, worker: WorkerPool, session: int) -> None:
        """Assign the worker to this session."""
        if worker.session != session:
            self._leave(worker)
            worker.session = session
            self._enter(worker)

    def end(self, session: int, clock_ms: int) -> None:
        """End the workers of a session that ends."""
        names = self._of_session.get(session, {})
        for name in list(names):
            worker = self.by_name.pop(name)
            self._leave(worker)
            if worker.unheard:
                self._keep(worker, clock_ms)

    def _keep(self, worker: WorkerPool, clock_ms: int) -> None:
        """Keep the operator's settings for the next pool of the name, if there is room."""
        if len(self.left) >= limits.WORKERS_LEFT_MAX:
            self.left = {name: one for name, one in self.left.items() if not _is_over(one, clock_ms)}
        if len(self.left) < limits.WORKERS_LEFT_MAX:
            worker.session, worker.beat_ms = 0, clock_ms
            self.left[worker.name] = worker

    def _enter(self, worker: WorkerPool) -> None:
        self._of_session.setdefault(worker.session, {})[worker.name] = None
        user = self._sessions[worker.session].user
        if user:
            self._of_user[user] = self._of_user.get(user, 0) + 1

    def _leave(self, worker: WorkerPool) -> None:
        names = self._of_session[worker.session]
        del names[worker.name]
        if not names:
            del self._of_session[worker.session]
        user = self._sessions[worker.session].user
        if user:
            self._of_user[user] -= 1
            if not self._of_user[user]:
                del self._of_user[user]


def _is_over(worker: WorkerPool, clock_ms: int) -> bool:
    """Return whether the operator's settings have expired."""
    return not worker.session and clock_ms - worker.beat_ms >= limits.WORKER_LEFT_MS
