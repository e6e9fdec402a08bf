"""The judge accuses nobody of what beanstalkd clients saw of a correct server, and finds each broken promise."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from tests.beanstalk.helpers.server import beanstalkd
from tests.chaos.beanstalkd.client import RecordingClient
from tests.chaos.beanstalkd.deeds import Deed, Deeds
from tests.chaos.beanstalkd.judge import judge, summary
from tests.chaos.beanstalkd.load import BeanstalkdLoad
from tests.chaos.machines.beanstalkd import PROGRAM
from tests.waiting import eventually

SECOND = 1_000_000_000
LASTS_S = 0.1
ANSWERS = {"delete": "DELETED", "release": "RELEASED", "bury": "BURIED", "touch": "TOUCHED", "kick-job": "KICKED"}


class Story:
    """Deeds, each of which lasts LASTS_S from the time that is given in seconds. A client has one connection."""

    def __init__(self) -> None:
        self.deeds = Deeds()
        self._connections: dict[str, int] = {}

    def put(self, job: int, at: float, *, priority: int = 0, delay: int = 0, ttr: int = 60, tube: str = "t") -> None:
        self._add("producer", "put", at, "INSERTED", job=job, body=f"b{job}", tubes=(tube,), priority=priority,
                  delay_s=delay, ttr_s=ttr)

    def put_refused(self, body: str, at: float) -> None:
        self._add("producer", "put", at, "DRAINING", body=body, tubes=("t",), ttr_s=60)

    def put_unanswered(self, body: str, at: float) -> None:
        self._add("producer", "put", at, None, body=body, tubes=("t",), ttr_s=60)

    def reserve(self, who: str, at: float, job: int | None, body: str = "", lasts: float = LASTS_S) -> None:
        """Record a reserve by `who` at `at` seconds. `job`: None for TIMED_OUT."""
        answer = "TIMED_OUT" if job is None else "RESERVED"
        self._add(who, "reserve", at, answer, lasts, job=job, body=None if job is None else body or f"b{job}",
                  tubes=("t",))

    def reserve_unanswered(self, who: str, at: float) -> None:
        self._add(who, "reserve", at, None, tubes=("t",))

    def do(
        self, who: str, verb: str, job: int, at: float, *, answer: str | None = "", priority: int = 0, delay: int = 0,
    ) -> None:
        """Record a command on a job at `at` seconds. `answer`: "" for success, None for none."""
        self._add(who, verb, at, ANSWERS[verb] if answer == "" else answer, job=job, priority=priority, delay_s=delay)

    def kick(self, at: float) -> None:
        self._add("producer", "kick", at, "KICKED", tubes=("t",))

    def ended(self, who: str, at: float) -> None:
        self.deeds.end(self._connections[who], int(at * SECOND))

    def _add(self, who: str, verb: str, at: float, answer: str | None, lasts: float = LASTS_S, **more: object) -> None:
        if who not in self._connections:
            self._connections[who] = self.deeds.connection()
        self.deeds.add(Deed(
            client=who, via="n1", connection=self._connections[who], verb=verb, start_ns=int(at * SECOND),
            end_ns=int((at + lasts) * SECOND), answer=answer, **more))      # type: ignore[arg-type]

    def broken(self) -> set[str]:
        """The rules that were broken."""
        return {found.rule.removeprefix("beanstalkd ") for found in judge(self.deeds, 0)}


def test_a_load_at_a_true_server_accuses_nobody() -> None:
    deeds = Deeds()
    with beanstalkd() as address, BeanstalkdLoad({PROGRAM: address, "n1": address}, deeds, seed=1) as jobs:
        assert eventually(lambda: len(deeds.deeds) > 300, 30)
        jobs.finish()
    assert judge(deeds, deeds.deeds[0].start_ns) == [], summary(deeds)
    verbs = {(deed.verb, deed.answer) for deed in deeds.deeds}
    assert {("put", "INSERTED"), ("reserve", "RESERVED"), ("reserve", "TIMED_OUT"), ("delete", "DELETED"),
            ("release", "RELEASED"), ("bury", "BURIED"), ("kick-job", "KICKED"), ("touch", "TOUCHED")} <= verbs


def test_who_did_not_see_that_the_server_ended_its_connection_holds_nothing_since_its_last_answer() -> None:
    deeds = Deeds()
    with beanstalkd() as address:
        ended, aborted = (RecordingClient(name, PROGRAM, address, deeds) for name in ("ended", "aborted"))
        assert ended.connect(("t",))
        assert aborted.connect(("t",))
        ended.put("t", 0, 0, 60)
        time.sleep(0.001)
        before_ns = time.monotonic_ns()
        aborted.abort()
    ended.abort()
    assert deeds.ended[2] > before_ns
    assert deeds.ended[1] == deeds.deeds[-1].end_ns


def _lost(story: Story) -> None:
    story.put(1, 0)
    story.reserve("a", 1, 1)
    story.ended("a", 2)


def _nobody_put_it(story: Story) -> None:
    story.reserve("a", 1, 7)


def _refused(story: Story) -> None:
    story.put_refused("b1", 0)
    story.reserve("a", 1, 1)


def _put_twice(story: Story) -> None:
    story.put_unanswered("b1", 0)
    for job, at in ((1, 1), (2, 2)):
        story.reserve("a", at, job, "b1")
        story.do("a", "delete", job, at + 0.5)


def _two_holders(story: Story) -> None:
    story.put(1, 0, ttr=10)
    story.reserve("a", 1, 1)
    story.reserve("b", 5, 1)
    story.do("b", "delete", 1, 6)


def _touched(story: Story) -> None:
    story.put(1, 0, ttr=10)
    story.reserve("a", 1, 1)
    story.do("a", "touch", 1, 9)
    story.reserve("b", 14, 1)
    story.do("b", "delete", 1, 15)


def _not_found_while_held(story: Story) -> None:
    story.put(1, 0, ttr=10)
    story.reserve("a", 1, 1)
    story.do("a", "delete", 1, 3, answer="NOT_FOUND")
    story.reserve("b", 30, 1)
    story.do("b", "delete", 1, 31)


def _back_after_its_delete(story: Story) -> None:
    story.put(1, 0)
    story.reserve("a", 1, 1)
    story.do("a", "delete", 1, 2)
    story.reserve("a", 3, 1)


def _before_its_delay(story: Story) -> None:
    story.put(1, 0, delay=5)
    story.reserve("a", 2, 1)
    story.do("a", "delete", 1, 3)


def _released_too_early(story: Story) -> None:
    story.put(1, 0)
    story.reserve("a", 1, 1)
    story.do("a", "release", 1, 2, delay=4)
    story.reserve("b", 4, 1)
    story.do("b", "delete", 1, 5)


def _buried_and_handed_out(story: Story) -> None:
    story.put(1, 0)
    story.reserve("a", 1, 1)
    story.do("a", "bury", 1, 2)
    story.reserve("b", 3, 1)
    story.do("b", "delete", 1, 4)
    story.kick(5)


def _buried_and_gone(story: Story) -> None:
    story.put(1, 0)
    story.reserve("a", 1, 1)
    story.do("a", "bury", 1, 2)
    story.do("a", "kick-job", 1, 3, answer="NOT_FOUND")
    story.kick(5)
    story.reserve("a", 6, 1)
    story.do("a", "delete", 1, 7)


def _passed_over(story: Story, second_priority: int = 1) -> None:
    story.put(1, 0, priority=0)
    story.put(2, 1, priority=second_priority)
    story.reserve("a", 2, 2)
    story.reserve("b", 3, 1)
    story.do("a", "delete", 2, 4)
    story.do("b", "delete", 1, 5)


def _same_priority(story: Story) -> None:
    _passed_over(story, second_priority=0)


def _not_at_its_old_place(story: Story) -> None:
    story.put(1, 0)
    story.put(2, 1)
    story.reserve("a", 2, 1)
    story.do("a", "release", 1, 3)
    story.reserve("b", 4, 2)
    story.reserve("a", 5, 1)
    story.do("a", "delete", 1, 6)
    story.do("b", "delete", 2, 6)


def _empty_that_is_not(story: Story) -> None:
    story.put(1, 0)
    story.reserve("a", 1, None)
    story.reserve("a", 2, 1)
    story.do("a", "delete", 1, 3)


def _falling_ids(story: Story) -> None:
    story.put(5, 0)
    story.put(4, 1)
    story.reserve("a", 2, 4)
    story.do("a", "delete", 4, 3)
    story.reserve("a", 4, 5)
    story.do("a", "delete", 5, 5)


@pytest.mark.parametrize(("tell", "rule"), [
    (_lost, "lost"), (_nobody_put_it, "invented"), (_refused, "invented"), (_put_twice, "invented"),
    (_two_holders, "holder"), (_touched, "holder"), (_not_found_while_held, "held"),
    (_back_after_its_delete, "deleted"), (_before_its_delay, "early"), (_released_too_early, "early"),
    (_buried_and_handed_out, "buried"), (_buried_and_gone, "buried"), (_passed_over, "order"),
    (_same_priority, "order"), (_not_at_its_old_place, "order"), (_empty_that_is_not, "order"), (_falling_ids, "ids"),
])
def test_a_broken_promise_is_found_out(tell: Callable[[Story], None], rule: str) -> None:
    story = Story()
    tell(story)
    assert rule in story.broken()


def _lease_over(story: Story) -> None:
    story.put(1, 0, ttr=2)
    story.reserve("a", 1, 1)
    story.reserve("b", 4, 1)
    story.do("a", "delete", 1, 5, answer="NOT_FOUND")
    story.do("b", "delete", 1, 5.2)


def _holder_died(story: Story) -> None:
    story.put(1, 0)
    story.reserve("a", 1, 1)
    story.ended("a", 2)
    story.reserve("b", 2.5, 1)
    story.do("b", "delete", 1, 3)


def _given_to_who_waited(story: Story) -> None:
    story.reserve("b", 0, 1, lasts=2)
    story.put(1, 1.8, ttr=1)
    story.do("b", "delete", 1, 2.5)


def _with_one_that_never_heard(story: Story) -> None:
    story.put(1, 0)
    story.put(2, 0.5)
    story.reserve_unanswered("c", 1)
    story.reserve("a", 2, 2)
    story.reserve("a", 15, 1)
    story.do("a", "delete", 1, 16)
    story.do("a", "delete", 2, 17)


def _lost_on_the_way_to_a_node_that_was_cut_off(story: Story) -> None:
    story.put(1, 0, ttr=2)
    story.put(2, 0.5)
    story.reserve("a", 1, 2)
    story.reserve("c", 0, None, lasts=3.5)
    story.reserve("a", 4, 1)
    story.do("a", "delete", 1, 5)
    story.do("a", "delete", 2, 6)


def _lost_on_the_way_and_another_given(story: Story) -> None:
    story.put(1, 0, ttr=2)
    story.put(2, 0.5)
    story.put(3, 0.6)
    story.reserve("a", 1, 2)
    story.reserve("c", 0, 3, lasts=3.5)
    story.reserve("a", 4, 1)
    for number, conn in ((1, "a"), (2, "a"), (3, "c")):
        story.do(conn, "delete", number, 4 + number)


def _new_priority(story: Story) -> None:
    story.put(1, 0, priority=0)
    story.put(2, 0.5, priority=5)
    story.reserve("a", 1, 1)
    story.do("a", "release", 1, 2, priority=9)
    story.reserve("a", 3, 2)
    story.do("a", "delete", 2, 4)
    story.reserve("a", 5, 1)
    story.do("a", "delete", 1, 6)


def _deleted_by_who_held_it(story: Story) -> None:
    story.put(1, 0, ttr=1)
    story.reserve("a", 1, 1)
    story.do("a", "delete", 1, 4)
    story.reserve("b", 5, None)


def _node_silent_for_long(story: Story) -> None:
    story.put(1, 0)
    story.reserve("a", 1, 1)
    story.do("a", "delete", 1, 30, answer="NOT_FOUND")
    story.reserve("a", 31, 1)
    story.do("a", "delete", 1, 32)


@pytest.mark.parametrize("tell", [
    _lease_over, _holder_died, _given_to_who_waited, _with_one_that_never_heard,
    _lost_on_the_way_to_a_node_that_was_cut_off, _lost_on_the_way_and_another_given, _new_priority,
    _deleted_by_who_held_it, _node_silent_for_long,
])
def test_what_can_be_explained_accuses_nobody(tell: Callable[[Story], None]) -> None:
    story = Story()
    tell(story)
    assert story.broken() == set()
