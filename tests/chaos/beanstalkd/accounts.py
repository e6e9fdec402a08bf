"""The deeds, sorted by job: its put, who held it and for how long at least, and when it surely waited."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping

from msgspec import Struct, field

from tests.chaos.beanstalkd.deeds import Deed, Deeds

SECOND = 1_000_000_000
NEVER = 1 << 62
EARLY_NS = SECOND // 5          # a lease may end so much sooner: it is measured on the clients' side
SILENT_NS = 5 * SECOND          # a door without an answer for longer may have been silent towards the cluster
OVERDUE_NS = 2 * SECOND         # an answer that clients wait at most a second for is late: the node was cut off
KEPT_NS = 6 * SECOND            # so long jobs reserved there stay surely, from its last answer (10 s, kept every 3 s)
HOLDS = ("delete", "release", "bury")


class Hold(Struct, eq=False):
    """A hand-out: the connection certainly held the job from the answer until `until_ns`."""

    deed: Deed
    until_ns: int
    ends: list[Deed] = field(default_factory=list)      # what its holder did with it, in order

    @property
    def from_ns(self) -> int:
        """Return the time from which this certainly holds."""
        return self.deed.end_ns


class Stay(Struct, eq=False):
    """A time in which the job certainly waited in its tube, ready, with this priority."""

    account: Account
    priority: int
    came_ns: int
    left_ns: int

    @property
    def place(self) -> tuple[int, int]:
        """Return the key by which jobs of a tube are sorted: priority, then id."""
        return self.priority, self.account.job


class Account(Struct, eq=False):
    """The records of one job."""

    job: int
    put: Deed
    holds: list[Hold] = field(default_factory=list)     # by the end of the reserve
    kicks: list[Deed] = field(default_factory=list)

    @property
    def deletes(self) -> list[Deed]:
        """Return all deletes that may have been executed."""
        return [end for hold in self.holds for end in hold.ends
                if end.verb == "delete" and end.answer in {None, "DELETED"}]

    def changes(self) -> list[Deed]:
        """Return what may have changed its priority, in order of time: changes of one job do not overlap."""
        ends = [end for hold in self.holds for end in hold.ends if end.verb in {"release", "bury"}]
        return sorted((end for end in ends if end.answer != "NOT_FOUND"), key=lambda end: end.start_ns)

    def priority(self, at_ns: int) -> int | None:
        """Return the priority at this moment; None if it is unknown."""
        priority: int | None = self.put.priority
        for end in self.changes():
            if end.start_ns > at_ns:
                break
            priority = end.priority if end.answer is not None and end.end_ns <= at_ns else None
        return priority

    def stays(self) -> Iterator[Stay]:
        """Yield when it certainly waited: from the answer to `put`, `release` or `kick-job` until its taker asked."""
        comings = [(self.put, self.put.priority)] if self.put.answer and not self.put.delay_s else []
        comings += [(end, end.priority) for end in self.changes()
                    if end.verb == "release" and end.answer == "RELEASED" and not end.delay_s]
        for kick in self.kicks:
            if kick.answer == "KICKED" and (priority := self.priority(kick.start_ns)) is not None:
                comings.append((kick, priority))
        for came, priority in comings:
            leaving = [*(hold.deed for hold in self.holds), *self.deletes]      # who held it once may delete it as well
            left_ns = min((deed.start_ns for deed in leaving if deed.end_ns >= came.start_ns), default=NEVER)
            if came.end_ns < left_ns:
                yield Stay(self, priority, came.end_ns, left_ns)


class Accounts:
    """All jobs whose ids are known, and the deeds that match none of them."""

    def __init__(self, deeds: Deeds) -> None:
        self.deeds = sorted(deeds.deeds, key=lambda deed: deed.start_ns)
        self.puts = {deed.body: deed for deed in self.deeds if deed.verb == "put"}
        self.by_job: dict[int, Account] = {}
        self.misfits: list[tuple[str, Deed]] = []       # what is wrong with it
        self.hidden: list[Deed] = []                    # reserves that may have got a job without a word to the client
        self._ended = deeds.ended
        self._silences = _silences(self.deeds)
        for deed in self.deeds:
            if deed.verb == "put" and deed.job is not None:
                self.by_job[deed.job] = Account(deed.job, deed)
        self._file()
        for account in self.by_job.values():
            account.holds.sort(key=lambda hold: hold.from_ns)

    def _file(self) -> None:
        open_holds: dict[tuple[int, int], Hold] = {}    # by connection and job
        for deed in self.deeds:                         # one connection executes one command after the other
            if deed.verb == "reserve":
                # A node without a link to the leader asks again when it has one: the job of the lost answer comes back
                # after its time to run, and the second answer may be TIMED_OUT, or another job.
                if deed.answer is None or deed.end_ns - deed.start_ns > OVERDUE_NS:
                    self.hidden.append(deed)
                if deed.job is not None and (account := self._account(deed)) is not None:
                    hold = Hold(deed, self._until(deed, account.put))
                    account.holds.append(hold)
                    open_holds[deed.connection, deed.job] = hold
            elif deed.verb == "kick-job" and deed.job in self.by_job:
                self.by_job[deed.job].kicks.append(deed)
            elif deed.verb in {*HOLDS, "touch"} and deed.job is not None:
                of = open_holds.get((deed.connection, deed.job))
                if of is not None:
                    of.ends.append(deed)
                    if deed.answer == "TOUCHED":
                        of.until_ns = max(of.until_ns, self._until(deed, self.by_job[deed.job].put))

    def _account(self, deed: Deed) -> Account | None:
        """Return the account of the job that was handed out; a put without an answer is recognised by its body."""
        assert deed.job is not None
        put, account = self.puts.get(deed.body), self.by_job.get(deed.job)
        if put is None or put.start_ns > deed.end_ns:
            self.misfits.append(("nobody had put it", deed))
        elif put.tubes[0] not in deed.tubes:
            self.misfits.append((f"it was put into {put.tubes[0]}", deed))
        elif put.answer not in {None, "INSERTED"}:
            self.misfits.append((f"its put was answered {put.answer}", deed))
        elif account is None and put.job is None and deed.body not in {one.put.body for one in self.by_job.values()}:
            self.by_job[deed.job] = Account(deed.job, put)
            return self.by_job[deed.job]
        elif account is None or account.put is not put:
            self.misfits.append(("the job of this body has another id, or the id another body", deed))
        else:
            return account
        return None

    def _until(self, deed: Deed, put: Deed) -> int:
        """Return how long the connection certainly holds the job: its time to run, its end, or its door's silence."""
        until_ns = max(deed.start_ns, put.start_ns) + put.ttr_s * SECOND - EARLY_NS
        silent_ns = next((at_ns for at_ns in self._silences[deed.via] if at_ns >= deed.end_ns), NEVER)
        return min(until_ns, self._ended.get(deed.connection, NEVER), silent_ns + KEPT_NS)


def _silences(deeds: list[Deed]) -> Mapping[str, list[int]]:
    """Return, for each door, the last answers before long silences."""
    answers: dict[str, list[int]] = defaultdict(list)
    for deed in sorted(deeds, key=lambda deed: deed.end_ns):
        if deed.answer is not None:
            answers[deed.via].append(deed.end_ns)
    return {
        via: [at_ns for at_ns, following_ns in zip(times, [*times[1:], NEVER], strict=True)
              if following_ns - at_ns > SILENT_NS]
        for via, times in answers.items()
    }
