"""The search field: jobs by number, id and key, and queues by a part of their names."""

from __future__ import annotations

import asyncio
import re

from tests.gateway.helpers.dashboard import XSS, Site, Users, run


def found_jobs(page: str) -> list[tuple[str, str]]:
    """Return the jobs found: their names, and their queue."""
    return re.findall(r'<td><a href="/job[?][^"]*">(.*?)</a></td><td><a[^>]*>(.*?)</a>', page)


def states(page: str) -> list[str]:
    """Return the states of the jobs found."""
    return re.findall(r'class="badge [a-z]+">([a-z]+)<', page)


def test_jobs_are_found_by_number_id_and_key_and_queues_by_their_names() -> None:
    async def test(found: Site) -> None:
        number = (await found.say(b"PUT mail 0 3 NUMBER\r\nabc")).split()[-1].decode()
        await found.say(b"PUT mail 0 3 KEY k1\r\nabcPUT other 0 3 KEY k1\r\nabcPUT mailing 0 1\r\nxGET mailing\r\n")
        # A single job is shown at once.
        for word, address in ((number, f"queue=mail&number={number}"), ("+1+", "id=1")):
            status, headers, _ = await found.ask("GET", f"/find?search={word}")
            assert (status, headers["Location"]) == (303, f"/job?{address}")
        assert sorted(found_jobs(await found.get("/find?search=k1"))) == [("k1", "mail"), ("k1", "other")]
        page = await found.get("/find?search=mail")
        assert re.findall(r'<li><a href="/queue[?]name=(\w+)"', page) == ["mail", "mailing"]
        assert "All 2 in the table" in page
        assert "No job that you may see" in await found.get("/find?search=nothing")
        assert "<script>alert" not in await found.get("/find?search=" + XSS.replace(" ", "+").replace('"', "%22"))
        assert "Type the number" in await found.get("/find")
        await found.get("/find?search=" + "9" * 300)
        assert 'action="/find"' in await found.get("/slow")

    run(test)


def test_a_dead_job_is_shown_as_dead_although_it_can_be_taken_from_its_dead_letter_queue() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT mail 0 1 KEY k1\r\nxGET mail\r\nBURY 1\r\nPUT other 0 1 KEY k1\r\nx")
        page = await found.get("/find?search=k1")
        assert states(page) == ["dead", "ready"]
        await found.say(b"GET mail_dead\r\n")
        assert states(await found.get("/find?search=k1")) == ["running", "ready"]

    run(test)


def test_a_user_finds_jobs_of_their_queues_only() -> None:
    async def test(found: Site) -> None:
        number = (await found.say(b"PUT secret 0 3 NUMBER KEY k1\r\nabc")).split()[-1].decode()
        await found.say(b"PUT mail_a 0 3 KEY k1\r\nabc")
        found.user = "max"
        assert (await found.ask("GET", "/find?search=k1"))[1]["Location"] == "/job?queue=mail_a&key=k1"
        for word in (number, "secret"):
            page = await found.get(f"/find?search={word}")
            assert found_jobs(page) == []
            assert "<li>" not in page

    run(test, Users())


def test_pages_that_search_for_long_do_not_keep_the_others_waiting() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT mail 0 1\r\nx")
        async with found.hub.search_line:           # a slice of another search takes its time
            searching = [asyncio.ensure_future(found.get("/jobs?states=READY")) for _ in range(4)]
            while not found.dashboard._searching.locked():      # or this test hangs
                await asyncio.sleep(0.001)
            assert "mail" in await found.get("/queues")
        for page in await asyncio.gather(*searching):
            assert "mail" in page

    run(test)


def test_a_queue_with_jobs_and_dead_jobs_is_listed_once() -> None:
    async def test(found: Site) -> None:
        await found.say(b"QUEUE CREATE mail TRIES 3 DEAD other\r\nPUT mail 0 1\r\nxPUT mail 0 1\r\nx"
                        b"PUT mailing 0 1\r\nxGET mail\r\nBURY 1\r\n")
        page = await found.get("/find?search=mail")
        assert re.findall(r'<li><a href="/queue[?]name=(\w+)"', page) == ["mail", "mailing"]
        assert "All 2 in the table" in page

    run(test)
