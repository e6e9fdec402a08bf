"""The workers: pools of worker processes, each known by its name while its session lasts (spec/state-machine 11)."""

from __future__ import annotations

from msgspec import Struct
from sortedcontainers import SortedDict

from core.ops.workers import WorkerState


class WorkerPool(Struct, gc=False, eq=False):
    """One pool, as it said last, and what an operator wants of it."""

    name: str
    session: int
    address: str
    slots: int
    busy: int
    beat_ms: int                        # when its last heartbeat came
    most: int | None = None
    least: int | None = None
    state: WorkerState = WorkerState.RUN


class Workers:
    """All workers by name, and by session."""

    __slots__ = ("by_name", "of_session")

    def __init__(self) -> None:
        self.by_name: dict[str, WorkerPool] = SortedDict()
        self.of_session: dict[int, dict[str, None]] = {}        # names by session

    def add(self, worker: WorkerPool) -> None:
        """A worker of a new name."""
        self.by_name[worker.name] = worker
        self.of_session.setdefault(worker.session, {})[worker.name] = None

    def claim(self, worker: WorkerPool, session: int) -> None:
        """The worker belongs to this session from now on."""
        if worker.session != session:
            self._leave(worker)
            worker.session = session
            self.of_session.setdefault(session, {})[worker.name] = None

    def end(self, session: int) -> None:
        """The session has ended, and so have its workers."""
        for name in self.of_session.pop(session, ()):
            del self.by_name[name]

    def _leave(self, worker: WorkerPool) -> None:
        names = self.of_session[worker.session]
        del names[worker.name]
        if not names:
            del self.of_session[worker.session]
