"""The page of one item: its jobs, and the items before and behind it, as a graph."""

from __future__ import annotations

import re

import pytest

from sockpqd.gateway.dashboard.pages.parts import flow
from tests.gateway.helpers.dashboard import Site, Users, run


def boxes(page: str) -> dict[str, tuple[int, str, list[str]]]:
    """Return the boxes by title: their left edge, their text, and the lines of their jobs."""
    found = {}
    for box in re.findall(r'<g>(<rect x="(\d+)".*?)</g>', page):
        texts = [re.sub(r"<[^>]*>", "", one) for one in re.findall(r"<text[^>]*>(.*?)</text>", box[0])]
        found[texts[0]] = int(box[1]), texts[1], texts[2:]
    return found


async def fill(found: Site) -> None:
    """Put a flow of three stages, of which the second one waits for two items."""
    await found.say(b"PUT work 0 15 IS first KEY a\r\n{\"task\":\"load\"}PUT work 0 15 IS first\r\n{\"task\":\"load\"}"
                    b"PUT work 0 1 IS other KEY c\r\nxPUT work 0 1 IS second KEY d AFTER first|other\r\nx"
                    b"PUT mail 0 1 KEY e AFTER second\r\nxPUT work 0 1 IS alone\r\nx")


def test_a_flow_is_drawn_in_layers_with_the_states_of_its_jobs() -> None:
    async def test(found: Site) -> None:
        await fill(found)
        assert (await found.say(b"GET work IS first\r\n")).startswith(b"200 OK work 1")
        for name in ("first", "second", "other"):
            page = await found.get(f"/items?name={name}")
            drawn = boxes(page)
            assert drawn["first"][1:] == ("2 unfinished, 0 done", ["a", "running", "load", "ready"])
            assert drawn["other"][2] == ["c", "ready"]
            assert drawn["second"][2] == ["d", "delayed"]
            assert drawn["without an item"][2] == ["e", "delayed"]
            assert drawn["first"][0] == drawn["other"][0] < drawn["second"][0] < drawn["without an item"][0]
            assert page.count('class="edge"') == 3
            assert "not drawn" not in page
            assert "alone" not in drawn
        await found.say(b"BURY 1 REASON bad\r\n")
        assert boxes(await found.get("/items?name=first"))["first"][2] == ["a", "dead", "load", "ready"]

    run(test)


def test_of_a_large_flow_a_part_is_drawn(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(found: Site) -> None:
        for _ in range(20):
            await found.say(b"PUT work 0 1 IS many\r\nx")
        page = await found.get("/items?name=many")
        assert len(boxes(page)["many"][2]) == 2 * 12 + 1
        assert boxes(page)["many"][2][-1] == "8 more"
        assert "not drawn" not in page
        monkeypatch.setattr(flow, "JOBS_MAX", 5)
        page = await found.get("/items?name=many")
        assert boxes(page)["many"][2][-1] == "15 more"
        assert "not drawn" in page

    run(test)


def test_items_that_wait_for_each_other_are_drawn_all_the_same() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT work 0 1 IS a\r\nxPUT work 0 1 IS b AFTER a\r\nxPUT work 0 1 IS a AFTER b\r\nx")
        assert {"a", "b"} <= set(boxes(await found.get("/items?name=a")))

    run(test)


def test_a_user_sees_the_items_and_the_names_of_jobs_that_are_theirs() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT work 0 1 IS order_1 KEY secret\r\nxPUT work 0 1 IS dark AFTER order_1\r\nx")
        found.user = "tom"
        page = await found.get("/items?name=order_1")
        assert boxes(page)["order_1"][2] == ["a job", "ready"]
        assert "secret" not in page
        assert "dark" not in boxes(page)

    run(test, Users())
