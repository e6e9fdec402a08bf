"""Pages of things that do not exist, and lists that are empty: they say so in a sentence, and what to do."""

from __future__ import annotations

import pytest

from tests.gateway.helpers.dashboard import Site, Users, run

HTML = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}      # as browsers send it


@pytest.mark.parametrize(("path", "sentence", "back"), [
    ("/queue?name=nosuch", "There is no queue nosuch.", '<a href="/queues">Queues</a>'),
    ("/items?name=nosuch", "There is no item nosuch.", '<a href="/items">Items</a>'),
    ("/groups?name=nosuch", "There is no group nosuch.", '<a href="/groups">Groups</a>'),
    ("/pulses?name=nosuch", "There is no pulse nosuch.", '<a href="/pulses">Pulses</a>'),
    ("/job?id=77", "There is no such job there", '<a href="/jobs">Jobs</a>'),
])
def test_the_page_of_an_unknown_thing_leads_back_to_the_list(path: str, sentence: str, back: str) -> None:
    async def test(found: Site) -> None:
        page = await found.get(path, 404)
        assert "<h1>Not found</h1>" in page
        assert f"<p>{sentence}" in page
        assert f'<p class="above">{back}</p>' in page
        assert f"Go on at {back} or " in page

    run(test)


def test_an_unknown_address_is_a_page_for_browsers_and_a_line_for_programs() -> None:
    async def test(found: Site) -> None:
        status, headers, page = await found.ask("GET", "/nosuch", **HTML)
        assert (status, headers["Content-Type"]) == (404, "text/html; charset=utf-8")
        assert "<nav" in page
        assert "<p>There is no page at this address.</p>" in page
        assert 'Go on at <a href="/">Overview</a>.' in page
        assert "data-live" not in page          # there will be nothing new
        for method, headers in (("GET", {}), ("GET", {"Accept": "*/*"}), ("POST", HTML)):
            status, _, line = await found.ask(method, "/nosuch", **headers)
            assert (status, line) == (404, "not found\n")

    run(test)


def test_strangers_are_not_shown_the_frame_of_the_pages() -> None:
    async def test(found: Site) -> None:
        found.user = None
        assert (await found.ask("GET", "/nosuch", **HTML))[::2] == (404, "not found\n")
        found.user = "bare"
        assert "There is no page" in (await found.ask("GET", "/nosuch", **HTML))[2]

    run(test, Users())


@pytest.mark.parametrize(("path", "what", "command"), [
    ("/items", "An item is a name that jobs in any queues have in common", "pqctl job put QUEUE BODY --item order_17"),
    ("/pulses", "A pulse is a rate that many programs keep together", "pqctl pulse create mails --rate 10 --per 1"),
    ("/workers", "A worker is a program that takes jobs", "pqworker app:app"),
])
def test_an_empty_list_says_what_would_be_in_it_and_what_makes_one(path: str, what: str, command: str) -> None:
    async def test(found: Site) -> None:
        page = await found.get(path)
        assert what in page
        assert f"<code>{command}</code>" in page

    run(test)


@pytest.mark.parametrize(("path", "sentence"), [
    ("/items?search=x", "There is no such item."), ("/pulses?search=x", "There is no such pulse."),
])
def test_a_search_without_results_says_only_that(path: str, sentence: str) -> None:
    async def test(found: Site) -> None:
        page = await found.get(path)
        assert f'<p class="empty">{sentence}</p>' in page
        assert "<code>" not in page

    run(test)
