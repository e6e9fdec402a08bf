"""The page of several clusters."""

from __future__ import annotations

import re

from sockpqd.core import Accepted, SetMap
from tests.gateway.helpers.dashboard import Site, Users, run


def set_map(found: Site, lines: str, version: int = 7) -> str:
    """Give the cluster a map, in which {own} is its id; returns that."""
    machine = found.cluster.machine
    own = (machine.cluster_id or b"")[:8].hex()
    applied = machine.apply(machine.index + 1, machine.clock_ms, 0, [SetMap(version, lines.format(own=own).encode())])
    assert applied.replies == [Accepted()]
    return own


def rows(page: str) -> list[list[str]]:
    """Return the texts of the cells of all tables."""
    found = re.findall(r"<tr>(.*?)</tr>", page, re.DOTALL)
    return [[re.sub(r"<[^>]*>", "", cell) for cell in re.findall(r"<td[^>]*>(.*?)</td>", row, re.DOTALL)]
            for row in found]


def test_without_a_map_it_says_how_to_make_one() -> None:
    async def test(found: Site) -> None:
        page = await found.get("/clusters")
        assert "This cluster is used alone" in page
        assert "<code>pqctl map init NAME</code>" in page
        assert (found.cluster.machine.cluster_id or b"")[:8].hex() in page
        assert "When a cluster is down" not in page

    run(test)


def test_clusters_are_shown_with_what_they_own() -> None:
    async def test(found: Site) -> None:
        own = set_map(found, (
            f"CLUSTER main {'f' * 16} a:1,a:2\nCLUSTER video {{own}} b:1\nRULE film. video\nRULE music. video\n"
            "RULE new. main\nSPREAD thumbs\nMOVING music. video main\n"))
        page = await found.get("/clusters")
        assert "Version 7 of the map" in page
        assert "to main, which is home" in page
        clusters = rows(page)
        assert ["main", "home", "f" * 16, "a:1, a:2", "2", "0"] in clusters
        assert ["video", "this cluster", own, "b:1", "1", "1"] in clusters
        assert ["film.*", "video", ""] in clusters
        assert ["music.*", "main", "moving: old jobs are worked off at video"] in clusters
        assert ["thumbs", "all", "spread over all clusters; owned by main"] in clusters
        assert "No cluster accepts" not in page
        for sentence in ("n1 LEADER", "jobs in", "pqctl cluster status --all", "pqctl map remove NAME --it-is-gone"):
            assert sentence in page, sentence

    run(test)


def test_names_are_searched_and_shown_a_page_at_a_time() -> None:
    async def test(found: Site) -> None:
        rules = "".join(f"RULE t{number:03}. main\n" for number in range(120))
        set_map(found, "CLUSTER main {own} a:1\n" + rules)
        page = await found.get("/clusters")
        assert "120 lines" in page
        assert 'href="/clusters?search=&amp;first=50"' in page
        assert "t099.*" not in page
        assert "t099.*" in await found.get("/clusters?search=t09")

    run(test)


def test_names_that_no_cluster_accepts_are_a_warning() -> None:
    async def test(found: Site) -> None:
        set_map(found, "CLUSTER main {own} a:1\nRULE film. -\n")
        page = await found.get("/clusters")
        assert "No cluster accepts film.* now" in page
        assert "<code>pqctl map move film. CLUSTER</code>" in page
        assert ["film.*", "-", "no cluster accepts them now"] in rows(page)

    run(test)


def test_a_cluster_that_was_removed_says_so_to_every_user() -> None:
    async def test(found: Site) -> None:
        found.user = "max"
        set_map(found, f"CLUSTER main {'f' * 16} a:1\n")
        assert "the map does not have this cluster: it accepts nothing" in await found.get("/clusters")

    run(test, Users())
