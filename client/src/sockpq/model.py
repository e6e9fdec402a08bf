"""The results of commands, as plain values."""

from __future__ import annotations

from json import loads
from typing import Any, Literal, NamedTuple

from sockpq.errors import SockpqError


class Key(NamedTuple):
    """Selects a job by the key it was put with, in any state: for change(), delete() and peek()."""

    queue: str
    key: str


class Number(NamedTuple):
    """Selects a job by its number (put(number=True)), in any state and queue: for change(), delete() and peek()."""

    number: int


class Place(NamedTuple):
    """Selects a ready or delayed job by its place, from peek_queue(places=True): for change(), delete() and peek().

    `seq` is the job's number in the whole cluster, a new one with each place that it takes.
    """

    queue: str
    seq: int


class Meta(NamedTuple):
    """The metadata of a job by get(meta=True): this hand-out is its `attempt`-th.

    `at`: the time for which it was put, if any; `expires_at`: when its lease ends, None without one. Both are Unix time
    in seconds, rounded up. `reason`: why a worker put it back last, if given. `group`: the one of put(group=), for fair
    shares. `number`: the one of put(number=True). `progress`: of a running job, 0 to 100, as last reported by its
    worker with touch(progress=). `ended`: the Unix time at which an ended job has ended. `life`: of a job with a
    number, with get(meta="life") only.
    """

    key: str | None
    attempt: int
    at: int | None
    expires_at: int | None
    reason: str | None = None
    group: str | None = None
    number: int | None = None
    progress: int | None = None
    ended: int | None = None
    life: Life | None = None


class Moved(NamedTuple):
    """The result of queue_move(): how many jobs were moved, and why the next one was not.

    `refusal`: QueueFull, QueuePaused, JobExists, DataTooLarge or QueueNotFound, of the queue that takes them.
    """

    jobs: int
    refusal: SockpqError | None = None


class Life(NamedTuple):
    """The times at which a numbered job was put, handed out first and last (Unix time, None: never), and how often.

    `died_in`: for a dead job, the queue that gave it up.
    """

    created: float
    first: float | None
    started: float | None
    taken: int
    died_in: str | None = None


class FairLevel(NamedTuple):
    """One level of fair shares: its scheduled time in microseconds, its groups with a ready job, and its choices."""

    level: int
    time_us: int
    waiting: int
    selected: int


class FairGroup(NamedTuple):
    """One group of fair shares: its level, the time it has used, its priority in the level, and its jobs."""

    level: int
    used_us: int
    priority_us: int
    waiting: int
    running: int


class GroupConfig(NamedTuple):
    """The settings of a group of jobs: 0 is no limit, and no rate. `rate` hand-outs in `per` seconds.

    `pause_left`: the rest of its pause in seconds, rounded up; 0: it has no end, or there is none.
    """

    limit: int
    rate: int
    per: float
    weight: int
    paused: bool
    pause_left: int = 0


class GroupTotals(NamedTuple):
    """One group of jobs: how many of them are in which state, and its settings as in GroupConfig."""

    name: str
    ready: int
    delayed: int
    running: int
    weight: int
    limit: int
    rate: int
    per: float
    paused: bool
    pause_left: int = 0


class ItemStat(NamedTuple):
    """The jobs of an item by state, those `done` since it began, and the `waiters`: jobs that wait for it.

    `cancelled`: jobs removed by item_cancel(); `cancelling`: that is still in progress, until no job is running.
    `held`: it does not end before item_release().
    """

    ready: int
    delayed: int
    running: int
    dead: int
    buried: int
    done: int
    waiters: int
    cancelled: int = 0
    held: bool = False
    cancelling: bool = False

    @property
    def unfinished(self) -> int:
        """The number of its jobs."""
        return self.ready + self.delayed + self.running + self.dead + self.buried


class ItemTotals(NamedTuple):
    """One item: how many unfinished jobs it has, how many of these are dead or buried; `held`, `cancelling`: ItemStat.
    """

    name: str
    unfinished: int
    dead: int
    held: bool = False
    cancelling: bool = False


class Handed(NamedTuple):
    """A job as the server sent it, running under `id` from now on."""

    id: int
    queue: str
    priority: int
    data: bytes
    item: str | None
    meta: Meta | None = None
    headers: dict[str, str] | None = None       # None: not asked for


class Stored(NamedTuple):
    """PUT: the job is queued. `item`: the name of the item it belongs to; `key`: its key in its queue.

    `outcome`: "new"; with `on_duplicate` also "exists" (another job has the key, nothing was changed) or "replaced";
    with `dedup` also "exists" (it was put before, nothing was changed); with `when="failed"` also "dropped" (the items
    have ended already, and it is not queued). `number`: with put(number=True), by which it is found in any state and
    queue: Number(stored.number).
    """

    item: str | None = None
    key: str | None = None
    outcome: str = "new"
    number: int | None = None

    def __repr__(self) -> str:
        told = {name: value for name, value in self._asdict().items() if value not in (None, "new")}
        return f"Stored({', '.join(f'{name}={value!r}' for name, value in told.items())})"


class Finished(NamedTuple):
    """DONE: the job is removed.

    `queue_done`: it was the last unfinished job of its queue (FINQ); `item_done`: the last one of its item (FINI).
    `next_at`: for a periodic job, which is not removed: the Unix time at which it is active again. `dropped`: its
    `result` or `error` was not kept, because the servers are short of memory or disk.
    """

    queue_done: bool
    item_done: bool
    next_at: int | None = None
    dropped: bool = False

    def __repr__(self) -> str:
        dropped = ", dropped=True" if self.dropped else ""
        return (
            f"Finished(queue_done={self.queue_done!r}, item_done={self.item_done!r}, next_at={self.next_at!r}{dropped})"
        )


class PeekedJob(NamedTuple):
    """A job of PEEK in any `state`: "ready", "delayed", "running", "dead", "buried"; `id` only while it is running.

    `attempt`: how often it was handed out; `at`, `expires_at` and `reason` as in Meta; `reason` also says why it was
    buried. `place`: its place (the old one of a running job), with peek_queue(places=True) only. `number` and `group`:
    of a job that has one. `headers`: with headers=True only. `progress` and `ended` as in Meta; the state of a job with
    `ended` is "done", "cancelled" or "expired". `life`: of a job with a number, with life=True only.
    """

    id: int | None
    queue: str
    priority: int
    data: bytes
    state: str
    item: str | None
    key: str | None
    attempt: int
    at: int | None
    expires_at: int | None
    reason: str | None = None
    place: Place | None = None
    number: int | None = None
    group: str | None = None
    headers: dict[str, str] | None = None
    progress: int | None = None
    ended: int | None = None
    life: Life | None = None

    @property
    def text(self) -> str:
        """Its data decoded from UTF-8; raises UnicodeDecodeError."""
        return self.data.decode()

    def json(self) -> Any:
        """Return its data decoded as JSON, for put(json=); raises ValueError when they are not JSON."""
        return loads(self.data)


class FoundJob(NamedTuple):
    """A job of find(): like PeekedJob, but with only the `length` of its data, and all other properties in `meta`.

    `cluster`: the name of the cluster that has it, where a map of clusters is in use.
    """

    id: int | None
    queue: str
    priority: int
    length: int
    state: str
    item: str | None
    meta: Meta
    place: Place | None
    cluster: str | None = None

    @property
    def number(self) -> int | None:
        """Its number, by which it is found in every state."""
        return self.meta.number


class Awaited(NamedTuple):
    """The end of a job by await_job().

    `state`: "done", "cancelled", "expired", "dead" or "buried"; `data`: the result of a "done" job, the error text of a
    "dead" or "buried" one, b"" without one.
    """

    state: str
    data: bytes

    @property
    def text(self) -> str:
        """The data decoded from UTF-8; raises UnicodeDecodeError."""
        return self.data.decode()

    def json(self) -> Any:
        """Return the data decoded as JSON; raises ValueError when they are not JSON."""
        return loads(self.data)


class JobStat(NamedTuple):
    """The state and the history of a job with a number, by JOB STAT.

    `created`: Unix time; `age`, `left` (until its lease ends or it becomes active), `lease` (its own, None: none) and
    `delay` (of its put() or last later()) in seconds. The counts are for its whole life, except `attempts`: since it
    was last put, kicked or moved. `died`: the Unix time at which it was given up last, None if it was not, or was
    kicked or moved since.
    """

    queue: str
    state: str
    priority: int
    length: int
    created: int
    age: int
    lease: float | None
    delay: float
    left: int
    attempts: int
    reserves: int
    timeouts: int
    releases: int
    buries: int
    kicks: int
    died: int | None = None


class Totals(NamedTuple):
    """TOTAL: `priorities` counts pairs of queue and priority with a waiting job, `jobs` counts waiting jobs."""

    queues: int
    priorities: int
    jobs: int
    running: int


class QueueTotals(NamedTuple):
    """One line of QUEUE LIST: the numbers of waiting, delayed, running, dead and buried jobs of the queue.

    `cluster`: the name of the cluster that has them, where a map of clusters is in use.
    """

    name: str
    ready: int
    delayed: int
    running: int
    dead: int
    buried: int = 0
    cluster: str | None = None


class Grant(NamedTuple):
    """The answer to PULSE WAIT: a turn with this ticket; `denied`: it says not to act."""

    ticket: int
    payload: bytes
    denied: bool


class RunningJob(NamedTuple):
    """One line of RUNLIST. `expires_at` is Unix time in seconds, None without a limit; `data` only when asked for."""

    id: int
    queue: str
    priority: int
    expires_at: int | None
    data: bytes | None


class NodeStatus(NamedTuple):
    """One line of CLUSTER STATUS as the answering node knows it; None where it knows nothing.

    `client` is the address clients dial, "host:port"; `role` LEADER, FOLLOWER, CANDIDATE, LEARNER (added, has no vote
    yet) or DOWN; `lag` counts log entries behind the leader's commit index.
    """

    id: int | None
    name: str
    client: str | None
    role: str
    online: bool | None
    term: int | None
    applied: int | None
    lag: int | None
    version: str | None
    ahead_ms: int | None = None     # how far its clock is ahead of the clock of the node that was asked, roughly
    level: int | None = None        # the feature level that it knows,
    cluster_level: int | None = None    # and the cluster's, as far as it knows


class ClusterId(NamedTuple):
    """CLUSTER ID: the unique id of the cluster, None before its server has heard of a leader, and its name."""

    id: str | None
    name: str | None


class Leader(NamedTuple):
    """CLUSTER LEADER: the leader's server id and the address clients dial, "host:port", None where it is not known."""

    id: int
    client: str | None


class SessionInfo(NamedTuple):
    """One line of SESSION LIST: a session, by its `number` (the name by which it is used is never shown).

    `user` and `address` are the opening client's, None if there is none or it is unknown; for IPv6 only the /64
    network. `ttl` and `idle`: its lifetime without use, and the time since its last use, in seconds; `bound`: the
    number of jobs that go back to their queues with its end.
    """

    number: int
    user: str | None
    address: str | None
    ttl: float
    idle: int
    bound: int


class Binding(NamedTuple):
    """One line of TOPIC LIST: `queue` is bound to `topic`, with a `pattern` of routing keys or for all."""

    topic: str
    queue: str
    pattern: str | None


class WorkerBounds(NamedTuple):
    """An operator's settings for a pool of workers: the bounds of its jobs at a time, each None if not set.

    `state`: "run", "pause" or "stop".
    """

    most: int | None
    least: int | None
    state: str


class WorkerInfo(NamedTuple):
    """One line of WORKER LIST: a pool of workers, connected from `address`; `age` seconds since its last heartbeat.

    `state`: as set by an operator: "run", "pause" or "stop".
    """

    name: str
    address: str | None
    slots: int
    busy: int
    age: int
    state: str = "run"


class StateHash(NamedTuple):
    """CLUSTER HASH: one `hash` of everything that the server has executed up to the position `applied` of the log."""

    applied: int
    hash: str


class ReplicaStatus(NamedTuple):
    """CLUSTER REPLICA: how a server of a copy in another region follows its origin.

    `phase`: "following", "snapshot" (it fetches the state with which the copy begins), "connecting", "idle" (another
    server of the copy follows), or "stopped" by cluster_offline(). `position`: the last entry of the origin's log in
    the copy. `origin`: the id of the cluster that is copied. Only the server that follows knows the others:
    `executed`, the entries that the origin has, by its last report; `lag`, the seconds since the copy had all of
    them; `server` of the origin, from which it reads; `problem`: why it does not follow, empty while it does.
    """

    phase: str
    position: int
    origin: str | None
    executed: int | None
    lag: float | None
    server: str | None
    problem: str


class User(NamedTuple):
    """One line of USER LIST. `rights` as "put:mail*"; `in_file`: of the servers' files, so that USER SET is refused."""

    name: str
    rights: tuple[str, ...]
    in_file: bool


class Waiting(NamedTuple):
    """`206 Wait for output`: the PUT is executed, its output has not arrived yet. `item` groups the two."""

    item: str


EventType = Literal[
    "FINQ", "FINI", "FAILI", "PUT", "TAKE", "DONE", "LATER", "EXPIRED", "DEAD", "TTL", "DEPTH", "PULSE", "LEADER",
    "IDLE", "DROP", "WORKER", "PROGRESS", "CANCEL", "MSG",
]
EventType.__doc__ = "What an event of events() is about: the word that PROTOCOL has for it."


class Event(NamedTuple):
    """One event of events().

    `seq`: its number, the same on every server (for "MSG" the number of the newest event). `name`: the queue, item,
    pulse, worker or channel, for "LEADER" the node. `priority` and `id`: of the job, if the type has them. `words`: the
    rest of its line after the type. `data`: the message of "MSG".
    """

    seq: int
    type: str
    name: str
    priority: int | None
    id: int | None
    words: tuple[str, ...]
    data: bytes
