"""Actions on all jobs that a filter finds: they report their progress, can be stopped, and treat each job once."""

from __future__ import annotations

import asyncio
import html
import re
from collections.abc import Awaitable, Callable
from functools import partial

import pytest

from sockpqd.cluster.api import NotLeader, OutcomeUnknown
from sockpqd.gateway.commands.find import Slices
from sockpqd.gateway.dashboard import background, commands
from sockpqd.gateway.dashboard.actions import BadForm
from sockpqd.gateway.dashboard.commands import NO_ANSWER
from sockpqd.gateway.dashboard.job_filter import filter_of
from sockpqd.gateway.dashboard.pages.finding import jobs
from tests.gateway.dashboard.test_dead import kill
from tests.gateway.helpers.dashboard import Site, Users, run

ROW = re.compile(r"<tr><td>(?P<what>[^<]*)</td><td>.*?</td>"
                 r"<td>(?P<state>.*?)</td><td>(?P<far>.*?)</td>")


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    """Wait for a condition; `run` has the limit of time."""
    while not await condition():
        await asyncio.sleep(0.02)


async def newest(found: Site) -> tuple[str, str]:
    """Return state and progress of the newest action."""
    row = ROW.search(await found.get("/background"))
    assert row is not None
    return html.unescape(row["state"]), html.unescape(row["far"])


async def ended(found: Site) -> tuple[str, str]:
    """Return the same, when it has ended."""
    async def over() -> bool:
        return (await newest(found))[0].partition(":")[0] in ("done", "stopped", "failed")

    await until(over)
    return await newest(found)


async def dead(found: Site, queue: str) -> int:
    """Count the dead jobs of this queue."""
    counts = found.cluster.machine.counts(queue)
    return 0 if counts is None else counts.dead


def test_the_dead_jobs_of_one_reason_are_retried_and_no_others() -> None:
    async def test(found: Site) -> None:
        await kill(found, "mail", *["ConnectionError"] * 5, "ValueError", "")
        await kill(found, "other", "ConnectionError")
        page = await found.get("/dead")
        assert "Retry 5" in page
        fields = {"queues": "mail_dead", "states": "DEAD", "died_in": "mail"}
        status, to, _ = await found.act("jobs.retry", **fields, reason="ConnectionError")
        assert (status, to.partition("?")[0]) == (303, "/background")
        assert "begun: retry dead jobs of mail, of the reason ConnectionError" in await found.get(to)
        assert await ended(found) == ("done", "5 of 5")
        assert (await dead(found, "mail"), await dead(found, "other")) == (2, 1)
        await found.act("jobs.retry", **fields, unreasoned="yes")
        assert await ended(found) == ("done", "1 of 1")
        assert "ValueError" in await found.get("/dead")

    run(test)


def test_a_job_that_dies_again_meanwhile_is_not_retried_twice() -> None:
    async def test(found: Site) -> None:
        await kill(found, "mail", "a", "a")
        sent: list[bytes] = []
        real = background.execute_at_leader

        async def and_die(hub: object, user: object, address: object, data: bytes) -> bytes:
            sent.append(data)
            answers = await real(found.hub, None, "x:HTTP", data)
            for _ in range(2):
                taken = (await found.say(b"GET mail\r\n")).split()[3]
                await found.say(b"BURY %s REASON a\r\n" % taken)
            return answers

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(background, "execute_at_leader", and_die)
            await found.act("jobs.retry", queues="mail_dead")
            assert await ended(found) == ("done", "2 of 2")
        assert len(sent) == 1
        assert await dead(found, "mail") == 2

    run(test)


def test_a_job_that_dies_again_before_the_search_comes_to_its_new_place_is_not_found_again() -> None:
    async def test(found: Site) -> None:
        await kill(found, "mail", "a", "a", "a")
        sent: list[bytes] = []
        real = background.execute_at_leader

        async def and_die(hub: object, user: object, address: object, data: bytes) -> bytes:
            sent.append(data)
            answers = await real(found.hub, None, "x:HTTP", data)
            if len(sent) < 10:
                taken = (await found.say(b"GET mail\r\n")).split()[3]
                await found.say(b"BURY %s REASON a\r\n" % taken)
            return answers

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(background, "execute_at_leader", and_die)
            patch.setattr(background, "matches", partial(background.matches, found_max=1))
            patch.setattr(background, "BATCH", 1)
            await found.act("jobs.retry", queues="mail_dead")
            assert await ended(found) == ("done", "3 of 3")
        assert len(sent) == 3
        assert await dead(found, "mail") == 3

    run(test)


def test_what_was_not_executed_or_perhaps_was_is_sent_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(found: Site) -> None:
        await kill(found, "mail", *["a"] * 4)
        real, outcomes = commands.execute, iter(["not", "unknown", "half"])
        monkeypatch.setattr(background, "AGAIN_S", 0.01)

        async def failing(hub: object, user: object, address: object, data: bytes) -> bytes:
            match next(outcomes, ""):
                case "not":
                    raise NotLeader
                case "unknown":
                    await real(found.hub, None, "x:HTTP", data.partition(b"\r\n")[0] + b"\r\n")
                    return NO_ANSWER
                case "half":
                    first = b"\r\n".join(data.split(b"\r\n")[:2]) + b"\r\n"
                    return await real(found.hub, None, "x:HTTP", first) + b"500 Offline Mode\r\n"
            return await real(found.hub, None, "x:HTTP", data)

        monkeypatch.setattr(background, "execute_at_leader", failing)
        await found.act("jobs.retry", queues="mail_dead")
        assert await ended(found) == ("done", "3 of 4; 1 were gone by then")
        assert await dead(found, "mail") == 0

    run(test)


def test_without_a_node_that_answers_it_fails_and_says_how_far_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(found: Site) -> None:
        await kill(found, "mail", "a", "a")
        monkeypatch.setattr(background, "AGAIN_S", 0.001)
        found.cluster.role = "FOLLOWER"

        async def nobody(hub: object, user: object, address: object, data: bytes) -> bytes:
            raise NotLeader

        monkeypatch.setattr(background, "execute_at_leader", nobody)
        await found.act("jobs.retry", queues="mail_dead")
        assert await ended(found) == ("failed: no node answered", "0 of 2")

        async def busy(hub: object, user: object, address: object, data: bytes) -> bytes:
            return b"503 Busy\r\n"

        monkeypatch.setattr(background, "execute_at_leader", busy)
        await found.act("jobs.retry", queues="mail_dead")
        assert await ended(found) == ("failed: the last answer was 503 Busy", "0 of 2")

    run(test)


def test_what_is_being_sent_when_it_is_stopped_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(found: Site) -> None:
        await kill(found, "mail", *["a"] * 5)
        monkeypatch.setattr(background, "BATCH", 2)
        real = background.execute_at_leader

        async def stopped_meanwhile(hub: object, user: object, address: object, data: bytes) -> bytes:
            answers = await real(found.hub, None, "x:HTTP", data)
            number = re.search(r'name="number" value="([^"]+)"', await found.get("/background"))
            assert number is not None
            await found.act("jobs.stop", number=number[1])
            return answers

        monkeypatch.setattr(background, "execute_at_leader", stopped_meanwhile)
        await found.act("jobs.retry", queues="mail_dead")
        assert await ended(found) == ("stopped", "2 of 5")
        assert await dead(found, "mail") == 3

    run(test)


def test_it_is_stopped_and_what_was_done_stays_done(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(found: Site) -> None:
        await kill(found, "mail", *["a"] * 5)
        monkeypatch.setattr(background, "BATCH", 2)
        monkeypatch.setattr(background, "REST_S", 3600.0)
        await found.act("jobs.retry", queues="mail_dead")

        async def begun() -> bool:
            return await newest(found) == ("running", "2 of 5")

        await until(begun)
        number = re.search(r'name="number" value="([^"]+)"', await found.get("/background"))
        assert number is not None
        status, _, page = await found.act("jobs.stop", number="other")
        assert (status, "no such action" in page) == (400, True)
        await found.act("jobs.stop", number=number[1])
        assert await ended(found) == ("stopped", "2 of 5")
        assert await dead(found, "mail") == 3
        await found.act("jobs.retry", queues="mail_dead")
        await found.dashboard.close()
        assert (await newest(found))[0] == "stopped"

    run(test)


def test_removing_asks_first_and_takes_jobs_in_any_state() -> None:
    async def test(found: Site) -> None:
        await found.say(b"QUEUE CREATE mail RETAIN 3600\r\nPUT mail 0 1 NUMBER\r\naPUT mail 0 1\r\nb"
                        b"PUT mail 0 1 DELAY 60\r\ncGET mail\r\nDONE 1\r\nPUT mail 0 1\r\ndGET mail\r\n"
                        b"PUT keep 0 1\r\ne")
        await kill(found, "mail", "a")
        status, _, page = await found.act("jobs.cancel", sure="", queues="mail|mail_dead")
        assert status == 200
        assert "Are you sure?" in page
        assert "FIND mail|mail_dead" in page
        await found.act("jobs.cancel", queues="mail|mail_dead")
        assert (await ended(found))[0] == "done"
        await found.act("jobs.cancel", queues="mail", states="DONE|CANCELLED")
        assert (await ended(found))[0] == "done"
        assert await found.say(b"FIND *\r\n") == b"200 OK 1\r\nkeep - 0 1 READY TRY 0 SEQ 1740800000000004\r\n"
        assert await found.say(b"FIND * STATE DONE|CANCELLED\r\n") == b"200 OK 0\r\n"

    run(test)


def test_what_a_search_finds_moves_to_another_queue() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT mail 3 1 KEY k\r\naPUT mail 0 1\r\nbPUT mail 0 1 DELAY 60\r\ncPUT keep 0 1\r\ne")
        await kill(found, "other", "ConnectionError", "ValueError")
        status, _, page = await found.act("jobs.move", sure="", queues="mail", to="later")
        assert status == 200
        assert "Are you sure?" in page
        assert (await found.act("jobs.move", queues="mail", to="two words"))[0] == 400
        await found.act("jobs.move", queues="mail", to="later")
        assert await ended(found) == ("done", "2 of 3; 1 left alone: their state does not allow it, or they are buried "
                                              "without a number")
        assert await found.say(b"PEEK later READY COUNT 9\r\n") == (
            b"200 OK 2\r\nlater - 3 1 READY KEY k TRY 0\r\nlater - 0 1 READY TRY 0\r\nab")
        await found.act("jobs.move", queues="other_dead", reason="ValueError", to="later")
        assert await ended(found) == ("done", "1 of 1")
        assert await dead(found, "other") == 1

    run(test)


def test_a_queue_that_is_full_ends_the_move_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(found: Site) -> None:
        await found.say(b"QUEUE CREATE small CAPACITY 1\r\nPUT mail 0 1\r\naPUT mail 0 1\r\nb")
        await found.act("jobs.move", queues="mail", to="small")
        assert await ended(found) == ("failed: the last answer was 503 Queue Full", "1 of 2")
        assert await found.say(b"PEEK mail READY\r\n") == b"200 OK 1\r\nmail - 0 1 READY TRY 0\r\nb"

    monkeypatch.setattr(background, "AGAIN_S", 0.0)
    run(test)


def test_jobs_that_cannot_be_retried_are_left_alone_and_counted() -> None:
    async def test(found: Site) -> None:
        await kill(found, "mail", "x")
        await found.say(b"PUT mail 0 1\r\na")
        await found.act("jobs.retry", queues="mail|mail_dead")
        assert await ended(found) == ("done", "1 of 2; 1 left alone: their state does not allow it, or they are "
                                      "buried without a number")

    run(test)


def test_a_user_acts_on_their_queues_only_and_sees_their_actions_only() -> None:
    async def test(found: Site) -> None:
        await kill(found, "mail_a", "x")
        await kill(found, "secret", "x")
        found.user = "max"
        await found.act("jobs.retry", states="DEAD")
        assert await ended(found) == ("done", "1 of 1")
        assert (await dead(found, "mail_a"), await dead(found, "secret")) == (0, 1)
        found.user = "tom"
        assert "None was begun" in await found.get("/background")
        found.user = "eva"
        assert "REASON" not in (await ended(found))[1]

    run(test, Users())


def test_not_too_many_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(found: Site) -> None:
        monkeypatch.setattr(background, "BATCH", 1)
        monkeypatch.setattr(background, "REST_S", 3600.0)
        await kill(found, "mail", *["a"] * 3)
        for _ in range(background.RUNNING_MAX):
            assert (await found.act("jobs.retry", queues="mail_dead"))[0] == 303
        status, _, page = await found.act("jobs.retry", queues="mail_dead")
        assert status == 400
        assert "are going on" in page
        await found.dashboard.close()

    run(test)


@pytest.mark.parametrize(("given", "line"), [
    ({"queues": "a|b", "states": "READY|DEAD", "key": "k"}, "FIND a|b STATE READY|DEAD KEY k*"),
    ({"reason": "x", "group": "g", "item": "i"}, "FIND * IS i GROUP g REASON x"),
    ({"header": "subject", "value": "hello you"}, "FIND * HEAD subject hello%20you"),
    ({"header": "subject", "value": "50% ü"}, "FIND * HEAD subject 50%25%20%C3%BC"),
    ({"header": "subject"}, "FIND * HEAD subject %"),
    ({"since": "2 h", "until": "10min"}, "FIND * SINCE 2800 UNTIL 9400"),
    ({"since": "1700000000"}, "FIND * SINCE 1700000000"),
])
def test_the_fields_of_a_form_are_what_find_takes(given: dict[str, str], line: str) -> None:
    assert filter_of(given, 10_000_000).line == line


@pytest.mark.parametrize(("given", "words"), [
    ({"queues": "*"}, "jobs of all queues"),
    ({"queues": "a|b", "states": "READY|DEAD", "key": "k"}, "ready or dead jobs of a or b, with a key like k*"),
    ({"queues": "mail_dead", "states": "DEAD", "died_in": "mail", "reason": "Timeout"},
     "dead jobs of mail, of the reason Timeout"),
    ({"queues": "mail_dead", "unreasoned": "yes", "item": "i", "group": "g"},
     "jobs of mail_dead, without a reason, of the item i, of the group g"),
    ({"since": "1700000000", "header": "subject", "value": "hello you"},
     "jobs of all queues, since 2023-11-14 22:13 UTC, with the header subject: hello you"),
    ({"until": "99999999999999"}, "jobs of all queues, until 99999999999999"),
])
def test_a_filter_is_shown_in_words(given: dict[str, str], words: str) -> None:
    assert filter_of(given, 10_000_000).in_words() == words


@pytest.mark.parametrize("given", [
    {"queues": "a b"}, {"states": "LOST"}, {"since": "yesterday"}, {"reason": "two words"}, {"died_in": "a b"},
    {"group": "g REASON x"}, {"value": "without a header"},
])
def test_a_wrong_field_is_refused(given: dict[str, str]) -> None:
    with pytest.raises(BadForm):
        filter_of(given, 0)


def test_jobs_are_searched_for_with_a_cursor() -> None:
    async def test(found: Site) -> None:
        assert "Search" in await found.get("/jobs")
        for number in range(60):
            await found.say(b"PUT mail 0 1 KEY k%02d\r\nx" % number)
        await found.say(b"PUT mail 0 1 KEY other\r\nx")
        page = await found.get("/jobs?queues=mail&key=k")
        assert "there may be more" in page
        assert len(re.findall(r">k[0-9]{2}</a>", page)) == 50
        onward = re.search(r'href="(/jobs[?][^"]*from=[^"]*)"', page)
        assert onward is not None
        page = await found.get(html.unescape(onward[1]))
        assert len(re.findall(r">k[0-9]{2}</a>", page)) == 10
        assert ">other</a>" not in page
        assert "STATE" in await found.get("/jobs?states=LOST")

    run(test)


def test_an_action_of_a_follower_whose_outcome_is_unknown_has_no_answer() -> None:
    async def test(found: Site) -> None:
        async def unknown(user: object, address: object, data: bytes) -> bytes:
            raise OutcomeUnknown

        found.cluster.role = "FOLLOWER"
        found.cluster.forward_command = unknown  # type: ignore[method-assign, assignment]
        found.cluster.leader = lambda: "n2"  # type: ignore[method-assign]
        assert await commands.execute_at_leader(found.hub, None, "x", b"PING\r\n") == NO_ANSWER

    run(test)


def test_queues_share_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(found: Site) -> None:
        for number in range(30):
            await found.say(b"PUT q%02d 0 1 KEY k\r\nx" % number)
        begun = 0
        real = Slices.begin

        async def begin(slices: Slices) -> None:
            nonlocal begun
            begun += 1
            await real(slices)

        monkeypatch.setattr(Slices, "begin", begin)
        assert len(re.findall(r">k</a>", await found.get("/jobs?key=k"))) == 30
        assert begun < 10

    run(test)


def test_a_page_looks_at_a_limited_number_of_jobs_and_goes_on_behind_them(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(found: Site) -> None:
        for number in range(30):
            await found.say(b"PUT q%02d 0 1 KEY k%d\r\nx" % (number, number))
        monkeypatch.setattr(jobs, "LOOKED_MAX", 20)
        page = await found.get("/jobs?key=k29")
        assert "0 jobs, and there may be more" in page
        for _ in range(3):
            onward = re.search(r'href="(/jobs[?][^"]*from=[^"]*)"', page)
            assert onward is not None
            page = await found.get(html.unescape(onward[1]))
            if ">k29</a>" in page:
                break
        assert ">k29</a>" in page

    run(test)
