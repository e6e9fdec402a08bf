"""The page of one queue: its jobs by state, and its settings in words."""

from __future__ import annotations

import html
import re

import pytest

from sockpqd.gateway.dashboard.pages.parts import trouble
from tests.gateway.helpers.dashboard import Site, run


def tabs(page: str) -> dict[str, str]:
    """Return the number of jobs of each state, the shown one marked."""
    found = re.findall(r'<a( aria-current="true")? href="[^"]*">([a-z]+) <b>([^<]*)</b>',
                       page.partition('class="tabs"')[2].partition("</nav>")[0])
    return {state: f"*{count}" if current else count for current, state, count in found}


def setting(page: str, name: str) -> str:
    """Return the words of a setting."""
    found = re.search(f"<dt>{name}</dt><dd>(.*?)</dd>", page.partition("<h2>Settings</h2>")[2])
    assert found is not None, name
    return found[1]


def test_each_state_has_a_tab_with_its_number_and_the_first_one_with_jobs_is_shown() -> None:
    async def test(found: Site) -> None:
        await found.say(b"QUEUE CREATE mail RETAIN 600 NUMBERED 1\r\nPUT mail 0 4\r\nbody")
        await found.say(b"GET mail\r\nDONE 1 RESULT 1\r\nr")
        for number in range(30):
            await found.say(b"PUT mail 0 1 DELAY %d\r\nd" % (60 + number))
        page = await found.get("/queue?name=mail")
        assert tabs(page) == {"ready": "0", "delayed": "*30", "running": "0", "dead": "0", "buried": "0", "ended": "1"}
        assert "the first 25 of 30" in page
        page = await found.get("/queue?name=mail&tab=ENDED")
        assert tabs(page)["ended"] == "*1"
        assert ">body<" in page
        assert "done 0.0 s ago" in page

    run(test)


def test_settings_are_words_and_those_that_are_not_set_say_what_that_means() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT mail 0 1\r\nx")
        page = await found.get("/queue?name=mail")
        assert setting(page, "lease").startswith("none, unless")
        assert setting(page, "attempts").startswith("as many as it takes")
        assert setting(page, "running") == "any number of jobs at a time"
        assert setting(page, "rate") == "any number of jobs a second"
        assert setting(page, "records of ended jobs") == "none: what is done is gone"
        await found.say(b"QUEUE CONFIG mail EXPIRE 60 THEN DEAD TRIES 1 DEAD lost LIMIT 1 CAPACITY 10 TTL 7200 "
                        b"BACKOFF 1 60 RETAIN 3600 NUMBERED 1 RATE 5 PER 1\r\n")
        page = await found.get("/queue?name=mail")
        for name, words in {
            "lease": "60 s for a GET that names none; then the job is dead",
            "attempts": "1 attempt, then the job lies dead in lost",
            "after a failed attempt": "it waits for 1.0 s, each time twice as long, at most 60 s",
            "running": "at most 1 job at a time", "waiting": "at most 10 jobs; beyond that a PUT is refused",
            "jobs that nobody takes": "expire after 2.0 h", "rate": "at most 5 jobs in 1.0 s",
            "records of ended jobs": "kept for 60 min, at most 100,000 records and 64.0 MiB",
            "numbers": "each job gets one, by which it is found",
        }.items():
            assert setting(page, name) == words

    run(test)


def to_look_at(page: str) -> str:
    """Return the problems of the queue as text."""
    found = re.search(r"<section><h2>To look at</h2>(.*?)</section>", page)
    return "" if found is None else re.sub(r"<[^>]*>", "", found[1])


def test_problems_of_the_queue_come_first_with_the_reasons_of_its_dead_jobs() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT mail 0 1\r\nx")
        assert to_look_at(await found.get("/queue?name=mail")) == ""
        for number, reason in enumerate((b"slow", b"bad", b"bad"), start=1):
            await found.say(b"GET mail\r\nBURY %d REASON %s\r\nPUT mail 0 1\r\nx" % (number, reason))
        await found.say(b"QUEUE PAUSE mail IN\r\n")
        found.cluster.now_ms += 600_000
        assert to_look_at(await found.get("/queue?name=mail")) == (
            "dead3 dead jobs of mail, the first died 10 min ago: 2 of bad, 1 of slow"
            "no workernobody takes the jobs of mail: 1 job waits, the oldest for 10 min, and none runs"
            "pausedmail takes no jobs")
        # Dead jobs do not wait for a worker, though they are ready to be taken where they lie.
        assert to_look_at(await found.get("/queue?name=mail_dead")) == \
            "Dead jobs of mail lie here: what they died of, and how to retry them."

    run(test)


def test_reasons_of_very_many_dead_jobs_are_said_without_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(found: Site) -> None:
        monkeypatch.setattr(trouble, "DEAD_LOOKED", 2)
        for number in range(1, 4):
            await found.say(b"PUT mail 0 1\r\nxGET mail\r\nBURY %d REASON bad\r\n" % number)
        assert to_look_at(await found.get("/queue?name=mail")).endswith("the first died just now, mostly of bad")
        monkeypatch.setattr(trouble, "DEAD_LOOKED", 3)
        assert to_look_at(await found.get("/queue?name=mail")).endswith("the first died just now, of bad")

    run(test)


def test_bodies_that_are_calls_of_tasks_are_written_as_calls() -> None:
    async def test(found: Site) -> None:
        for body, shown in (
            (b'{"task":"app.add","args":[1,"a<b"],"kwargs":{"to":null}}', "app.add(1, &quot;a&lt;b&quot;, to=null)"),
            (b'{"task":"app.run"}', "app.run()"), (b'{"task":7}', "{&quot;task&quot;:7}"), (b'{"tas', "{&quot;tas"),
            (b'{"task":"deep","args":' + b"[" * 500, "{&quot;task&quot;:&quot;deep&quot;"),
            (b'{"task":"long","args":["' + b"x" * 300 + b'"]}', "long(&quot;" + "x" * 74 + "…"),
        ):
            await found.say(b"PUT calls 0 %d\r\n%s" % (len(body), body))
            page = await found.get("/queue?name=calls")
            assert f"<code>{shown}" in page
            await found.say(b"QUEUE PURGE calls READY\r\n")

    run(test)


def test_the_leader_shows_how_many_clients_wait_for_jobs_of_a_queue() -> None:
    async def test(found: Site) -> None:
        await found.say(b"QUEUE CREATE mail TRIES 3\r\n")
        client = await found.gateway.connect()
        client.send(b"GETB mail\r\nQUIT\r\n")
        for _ in range(1000):
            page = await found.get("/queue?name=mail")
            if "<dt>clients that wait</dt><dd>1<small>" in page:
                break
        else:
            raise AssertionError(page)

    run(test)


def test_a_search_leads_on_to_all_jobs_of_a_state() -> None:
    async def test(found: Site) -> None:
        await found.say(b"QUEUE CREATE mail RETAIN 600 NUMBERED 1\r\n")
        for number in range(1, 31):
            await found.say(b"PUT mail 0 1\r\nxGET mail\r\n%s %d\r\n" % (b"DONE" if number > 28 else b"BURY", number))
        assert "search all of them" not in await found.get("/queue?name=mail&tab=ENDED")
        onward = re.search(r'<a href="(/jobs[^"]*)">search all', await found.get("/queue?name=mail&tab=DEAD"))
        assert onward is not None
        assert "28 jobs<" in await found.get(html.unescape(onward[1]))
        for number in range(31, 61):
            await found.say(b"PUT mail 0 1\r\nxGET mail\r\nDONE %d\r\n" % number)
        onward = re.search(r'<a href="(/jobs[^"]*)">search all', await found.get("/queue?name=mail&tab=ENDED"))
        assert onward is not None
        assert "32 jobs<" in await found.get(html.unescape(onward[1]))

    run(test)
