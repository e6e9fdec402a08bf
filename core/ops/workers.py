"""The operations on workers: pools of worker processes that report themselves (spec/state-machine 11)."""

from __future__ import annotations

from enum import IntEnum

from sockpqd.core.ops.logged import Logged


class WorkerState(IntEnum):
    """The states into which an operator can put a pool."""

    RUN = 0
    PAUSE = 1       # take no more jobs for now
    STOP = 2        # take no more jobs, and end


class BeatWorker(Logged, tag=71, frozen=True):
    """WORKER: the pool `name` is alive, with `slots` places for jobs, of which `busy` are in use.

    It belongs to `session` and ends with it; the heartbeat counts as a use of the session. Afterwards, or after a long
    silence, another session may take the name. `address`: of the client. Replies: WorkerBounds, SessionNotFound,
    WorkerExists, TooManyWorkers.
    """

    name: str
    slots: int
    busy: int
    address: str = ""
    session: int = 0


class SetWorker(Logged, tag=72, frozen=True):
    """WORKER SET: set the answer to the pool's next heartbeats; None: unchanged.

    Replies: Accepted, WorkerNotFound, BadSetting (`least` would exceed `most`).
    """

    name: str
    most: int | None = None
    least: int | None = None
    state: WorkerState | None = None


OnWorkers = BeatWorker | SetWorker
