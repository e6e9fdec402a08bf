"""Finds violations for jobs of beanstalkd's clients that no order of their commands can explain.

    rule        promise
    lost        a job that was answered INSERTED is deleted in the end
    invented    a reserved job was put with these bytes, and not refused; one put is one job
    holder      a job has one holder at a time within its time to run
    held        the holder of a job within its time to run does not get NOT_FOUND
    deleted     a job that was answered DELETED is never seen again
    early       a delayed job is not handed out before its time
    buried      a buried job is not handed out, and can be kicked
    order       the smallest (priority, id) first; TIMED_OUT only when there is none
    ids         they rise

As in the checker (checker/__init__.py) a rule accuses only when no order of the commands explains the answers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice, pairwise

from sortedcontainers import SortedList

from tests.chaos.beanstalkd.accounts import EARLY_NS, HOLDS, NEVER, SECOND, Account, Accounts, Hold, Stay
from tests.chaos.beanstalkd.deeds import Deed, Deeds
from tests.chaos.checker import Violation

BACK_NS = 30 * SECOND       # after so long a job that was handed out to a connection that is no more is back
VIOLATIONS_MAX = 20         # of one rule
GONE = "NOT_FOUND"


def judge(deeds: Deeds, start_ns: int) -> list[Violation]:
    """Return all that certainly went wrong, after a drain; times in the texts are relative to `start_ns`."""
    accounts = Accounts(deeds)
    teller = _Teller(start_ns)
    rules = (_lost, _invented, _holder, _held, _deleted, _early, _buried, _order, _ids)
    return [Violation(f"beanstalkd {rule.__name__.removeprefix('_')}", text, ())
            for rule in rules for text in islice(rule(accounts, teller), VIOLATIONS_MAX)]


def summary(deeds: Deeds) -> str:
    """Return how much there was to judge."""
    accounts = Accounts(deeds)
    holds = [hold for account in accounts.by_job.values() for hold in account.holds]
    places = _Order(accounts)
    return (f"{len(deeds.deeds)} commands of beanstalkd's clients: "
            f"{len(accounts.by_job)} jobs, {len(holds)} hand-outs, "
            f"{sum(hold.until_ns > hold.from_ns for hold in holds)} surely held, {places.judged()} in order, "
            f"{len(accounts.hidden)} reserves whose answer may have been lost")


def jobs_deleted(deeds: Deeds) -> int:
    """Return how many jobs were deleted: a run with few proves nothing."""
    return sum(deed.verb == "delete" and deed.answer == "DELETED" for deed in deeds.deeds)


class _Teller:
    def __init__(self, start_ns: int) -> None:
        self._start_ns = start_ns

    def at(self, ns: int) -> str:
        return f"{(ns - self._start_ns) / SECOND:.3f} s"

    def __call__(self, deed: Deed) -> str:
        what = " ".join(map(str, filter(None, (deed.verb, *deed.tubes, deed.job, deed.body))))
        return (f"{what} -> {deed.answer} by {deed.client} on connection {deed.connection} "
                f"[{self.at(deed.start_ns)} .. {self.at(deed.end_ns)}]")


def _lost(accounts: Accounts, tell: _Teller) -> Iterator[str]:
    for account in accounts.by_job.values():
        if account.put.answer is not None and not account.deletes:
            seen = f"last seen by {tell(account.holds[-1].deed)}" if account.holds else "never seen again"
            yield f"{tell(account.put)}: {seen}"


def _invented(accounts: Accounts, tell: _Teller) -> Iterator[str]:
    for why, deed in accounts.misfits:
        yield f"{tell(deed)}: {why}"


def _holder(accounts: Accounts, tell: _Teller) -> Iterator[str]:
    for account in accounts.by_job.values():
        holds = [(hold, _sure_until(hold)) for hold in account.holds]
        for (first, until_ns), (second, second_until_ns) in pairwise(holds):
            if second.from_ns < until_ns and second_until_ns > second.from_ns:
                yield (f"{tell(second.deed)} came though {tell(first.deed)} held the job, surely until "
                       f"{tell.at(until_ns)}")


def _sure_until(hold: Hold) -> int:
    """Return until when the holder certainly had the job: it may have released it."""
    return min([hold.until_ns, *(end.start_ns for end in hold.ends if end.verb in HOLDS)])


def _held(accounts: Accounts, tell: _Teller) -> Iterator[str]:
    for account in accounts.by_job.values():
        for hold in account.holds:
            for end in hold.ends:
                if end.answer == GONE and end.end_ns < hold.until_ns:
                    yield f"{tell(end)}, though {tell(hold.deed)} held the job, surely until {tell.at(hold.until_ns)}"


def _deleted(accounts: Accounts, tell: _Teller) -> Iterator[str]:
    for account in accounts.by_job.values():
        done = [end for end in account.deletes if end.answer is not None]
        if not done:
            continue
        if len(done) > 1:
            yield f"{tell(done[0])}; {tell(done[1])}"
        for hold in account.holds:
            if hold.deed.start_ns > done[0].end_ns:
                yield f"{tell(hold.deed)} though {tell(done[0])}"


def _early(accounts: Accounts, tell: _Teller) -> Iterator[str]:
    for account in accounts.by_job.values():
        delays = [account.put, *(end for end in account.changes() if end.verb == "release" and end.answer is not None)]
        for delayed in delays:
            due_ns = delayed.start_ns + delayed.delay_s * SECOND - EARLY_NS
            for hold in account.holds:
                if delayed.delay_s and hold.deed.start_ns > delayed.end_ns and hold.from_ns < due_ns:
                    yield f"{tell(hold.deed)} before the delay of {delayed.delay_s} s was over: {tell(delayed)}"


def _buried(accounts: Accounts, tell: _Teller) -> Iterator[str]:
    kicks = [deed for deed in accounts.deeds if deed.verb == "kick"]
    for account in accounts.by_job.values():
        for bury in account.changes():
            if bury.answer != "BURIED":
                continue
            tube = account.put.tubes[0]
            risen = [*account.kicks, *(kick for kick in kicks if kick.tubes == (tube,)), *account.deletes]
            risen = [deed for deed in risen if deed.end_ns > bury.start_ns]
            risen_ns = min((deed.start_ns for deed in risen), default=NEVER)
            for hold in account.holds:
                if hold.deed.start_ns > bury.end_ns and hold.from_ns < risen_ns:
                    yield f"{tell(hold.deed)} though nobody had kicked it: {tell(bury)}"
            first = min(risen, key=lambda deed: deed.start_ns, default=None)
            if first is not None and first.verb == "kick-job" and first.answer == GONE and (
                all(deed is first or deed.start_ns > first.end_ns for deed in risen)
            ):
                yield f"{tell(first)} though it was buried: {tell(bury)}"


def _order(accounts: Accounts, tell: _Teller) -> Iterator[str]:
    yield from _Order(accounts).wrong(tell)


class _Order:
    """The reserves in the order of their beginning, against the jobs that surely waited from before until after each.

    There are few of these, because whatever stands first is taken soon.
    """

    def __init__(self, accounts: Accounts) -> None:
        self._accounts = accounts
        self._stays = [stay for account in accounts.by_job.values() for stay in account.stays()]
        self._reserves = [deed for deed in accounts.deeds if deed.verb == "reserve"
                          and deed.answer in {"RESERVED", "TIMED_OUT"} and (deed.job is None or self._place(deed))]

    def _place(self, deed: Deed) -> tuple[int, int] | None:
        """Return the place of the job that was handed out."""
        account = self._accounts.by_job.get(deed.job or 0)
        if account is None or any(deed.start_ns < end.end_ns and end.start_ns < deed.end_ns
                                  for end in account.changes()):
            return None
        priority = account.priority(deed.start_ns)
        return None if priority is None else (priority, account.job)

    def judged(self) -> int:
        """Return the hand-outs for which some other job certainly waited: their order can be judged."""
        return sum(self._seen())

    def _seen(self) -> Iterator[bool]:
        for deed, waiting in self._waiting():
            yield deed.job is not None and any(stay.left_ns > deed.end_ns for stay in waiting)

    def wrong(self, tell: _Teller) -> Iterator[str]:
        for deed, waiting in self._waiting():
            place = None if deed.job is None else self._place(deed)
            passed = [stay for stay in waiting
                      if stay.left_ns > deed.end_ns and (place is None or stay.place < place)]
            if len(passed) > self._hidden(deed, passed):
                stay = passed[0]
                what = "got TIMED_OUT" if place is None else f"got {place}"
                yield (f"{tell(deed)} {what}, but {stay.place} surely waited in {stay.account.put.tubes[0]} "
                       f"since {tell.at(stay.came_ns)}: {tell(stay.account.put)}")

    def _hidden(self, deed: Deed, passed: Sequence[Stay]) -> int:
        """Return how many of them may be held by connections that ended before the answer arrived."""
        if not passed:
            return 0
        return sum(one.start_ns < deed.end_ns and one.end_ns + BACK_NS > deed.start_ns
                   for one in self._accounts.hidden)

    def _waiting(self) -> Iterator[tuple[Deed, list[Stay]]]:
        """Return, for each reserve, the jobs of its tubes that certainly waited when it began, in order."""
        coming = sorted(self._stays, key=lambda stay: stay.came_ns)
        waiting: SortedList = SortedList(key=lambda stay: stay.place)
        at = 0
        for deed in self._reserves:
            while at < len(coming) and coming[at].came_ns < deed.start_ns:
                waiting.add(coming[at])
                at += 1
            for stay in [stay for stay in waiting if stay.left_ns < deed.start_ns]:
                waiting.remove(stay)
            yield deed, [stay for stay in waiting if stay.account.put.tubes[0] in deed.tubes]


def _ids(accounts: Accounts, tell: _Teller) -> Iterator[str]:
    highest: Account | None = None
    answered = sorted((one for one in accounts.by_job.values() if one.put.job), key=lambda one: one.put.start_ns)
    ended = sorted(answered, key=lambda one: one.put.end_ns)
    at = 0
    for account in answered:
        while ended[at].put.end_ns < account.put.start_ns:
            if highest is None or ended[at].job > highest.job:
                highest = ended[at]
            at += 1
        if highest is not None and highest.job > account.job:
            yield f"{tell(account.put)} after {tell(highest.put)}"
