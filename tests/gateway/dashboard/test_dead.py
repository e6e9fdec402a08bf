"""The page of dead jobs: grouped by queue and reason, with actions that put them back."""

from __future__ import annotations

import html
import re

import pytest

from sockpqd.gateway.dashboard.pages.finding import dead
from tests.gateway.helpers.dashboard import Site, Users, run


async def kill(found: Site, queue: str, *reasons: str) -> None:
    """Put a job for each reason and bury it for that."""
    for reason in reasons:
        await found.say(b"PUT %s 0 1\r\nx" % queue.encode())
        taken = (await found.say(b"GET %s\r\n" % queue.encode())).split()[3]
        words = b" REASON %s" % reason.encode() if reason else b""
        assert b"200 OK" in await found.say(b"BURY %s%s\r\n" % (taken, words))


def rows(page: str) -> list[list[str]]:
    """Return the text of the cells: queue, reason, number, first and last."""
    found = re.findall(r"<tr>(<td.*?)</tr>", page)
    return [[re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row)][:5] for row in found]


def test_dead_jobs_are_grouped_by_queue_and_reason_with_the_time_of_the_first_and_last() -> None:
    async def test(found: Site) -> None:
        assert "No job is dead." in await found.get("/dead")
        await kill(found, "mail", "ConnectionError", "ValueError")
        found.cluster.now_ms += 600_000
        await kill(found, "mail", "ConnectionError", "ConnectionError", "")
        await kill(found, "other", "Timeout")
        found.cluster.now_ms += 60_000
        await found.say(b"PUT tick 0 1\r\nx")
        page = await found.get("/dead")
        assert "6 dead jobs of 2 queues" in page
        assert rows(page)[0] == ["mail", "ConnectionError", "3", "11 min ago", "60 s ago"]
        assert sorted(row[:3] for row in rows(page)[1:3]) == [["", "ValueError", "1"], ["", "no reason given", "1"]]
        assert rows(page)[3][:3] == ["other", "Timeout", "1"]
        assert [row[0] for row in rows(await found.get("/dead?search=oth"))] == ["other"]
        example = re.search(r'href="(/job[?]queue=mail_dead[^"]*)"', page)
        assert example is not None
        assert "ConnectionError" in await found.get(html.unescape(example[1]))

    run(test)


def test_all_dead_jobs_of_a_queue_are_put_back_by_a_button() -> None:
    async def test(found: Site) -> None:
        await kill(found, "mail", "ConnectionError", "ValueError")
        page = await found.get("/dead")
        assert "Retry all 2" in page
        status, to, _ = await found.act("job.kick", queue="mail", count="2", back="/dead")
        assert status == 303
        assert to.startswith("/dead?")
        assert "KICK mail 2: 200 OK 2" in await found.get(to)
        assert "No job is dead." in await found.get("/dead")

    run(test)


def test_with_very_many_the_rest_is_not_counted_by_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(found: Site) -> None:
        await kill(found, "mail", *["ConnectionError"] * 4)
        await kill(found, "other", "Timeout", "Timeout")
        monkeypatch.setattr(dead, "LOOKED_MAX", 3)
        page = await found.get("/dead")
        assert rows(page)[0][:3] == ["mail", "ConnectionError", "at least 3"]
        assert rows(page)[1][:3] == ["other", "not looked at", "2"]
        assert "Retry all 4" in page

    run(test)


def test_a_user_sees_the_dead_jobs_of_their_queues() -> None:
    async def test(found: Site) -> None:
        await kill(found, "mail_a", "Refused")
        await kill(found, "secret", "Timeout")
        found.user = "max"
        page = await found.get("/dead")
        assert [row[0] for row in rows(page)] == ["mail_a"]
        assert "Retry it" in page
        found.user = "tom"              # may take jobs of all queues, and manages none
        page = await found.get("/dead")
        assert "secret" in page
        assert "Retry it" not in page

    run(test, Users())


def test_the_last_line_of_an_error_is_shown_to_those_who_may_see_the_job() -> None:
    async def test(found: Site) -> None:
        for number, error in ((1, b"Traceback:\n  <here>\nsmtp: refused\n\n"), (2, b"")):
            await found.say(b"PUT mail_a 0 1\r\nxGET mail_a\r\nBURY %d REASON r%d%s\r\n" % (
                number, number, b" ERROR %d\r\n%s" % (len(error), error) if error else b""))
        page = await found.get("/dead")
        assert '<strong>r1</strong><small class="cause">smtp: refused</small>' in page
        assert "<strong>r2</strong></td>" in page
        found.user = "bare"
        assert "smtp" not in await found.get("/dead")

    run(test, Users())
