"""The first page: whether all is well, what needs attention, and what each visitor sees of it."""

from __future__ import annotations

import re
import time
from collections.abc import Awaitable, Callable
from itertools import count

from msgspec.structs import replace

from sockpqd.cluster import HostFigures, NodeStatus
from sockpqd.gateway.dashboard.live import STALE_S, why_stale
from sockpqd.gateway.dashboard.pages.parts.nodes import nearest_limit
from sockpqd.gateway.dashboard.pages.parts.view import http_address
from sockpqd.gateway.samples.flows import Flows
from tests.gateway.helpers.dashboard import HOST, Site, Users, run


def node(name: str, role: str, **known: object) -> NodeStatus:
    """Return a node of three, up and level unless set otherwise."""
    up = NodeStatus(1, name, f"10.0.0.{name[1:]}:11361", role, True, 3, 7, 0, "1.0", 0, host=HostFigures(
        memory_used_bytes=200 << 20, memory_mark_bytes=1 << 30, disk_free_bytes=40 << 30, http_port=11363))
    return replace(up, **known)


def nodes(found: Site, *known: NodeStatus) -> None:
    """Make the cluster report these nodes."""
    found.cluster.status = lambda: list(known)      # type: ignore[method-assign]


NOW_S = 1_800_000_000 // 60 * 60 + 40           # in the middle of a minute
WELL = node("n1", "LEADER"), node("n2", "FOLLOWER"), node("n3", "FOLLOWER")


def verdict(page: str) -> tuple[str, str, str]:
    """Return the colour, the word and the sentence."""
    match = re.search(r'class="well (\w+)" role="status"><span class="word">(.*?)</span><span>(.*?)</span>', page)
    assert match is not None
    return match[1], match[2], match[3]


def test_all_is_well_or_it_is_said_why_not() -> None:
    async def test(found: Site) -> None:
        nodes(found, *WELL)
        assert verdict(await found.get("/"))[:2] == ("good", "all is well")
        nodes(found, *WELL[:2], replace(WELL[2], role="DOWN", online=None))
        colour, word, sentence = verdict(await found.get("/"))
        assert (colour, word) == ("bad", "trouble")
        assert "down" in sentence
        assert "none may be lost" in sentence
        nodes(found, replace(WELL[0], role="CANDIDATE"), *WELL[1:])
        assert verdict(await found.get("/"))[:2] == ("bad", "not serving")
        nodes(found, *WELL)
        found.cluster.full = True
        assert verdict(await found.get("/"))[:2] == ("bad", "full")
        found.cluster.full = False
        await found.say(b"CLUSTER OFFLINE\r\n")
        assert verdict(await found.get("/"))[:2] == ("bad", "offline")

    run(test)


def test_what_needs_attention_is_listed_with_links() -> None:
    async def test(found: Site) -> None:
        nodes(found, WELL[0], replace(WELL[1], lag=5000, ahead_ms=-3000), replace(WELL[2], online=False))
        await found.say(b"PUT mail 0 1\r\nxPUT mail 0 1\r\nxGET mail\r\nBURY 1 REASON bad\r\nPUT slow 0 1\r\nx"
                        b"GET slow\r\nQUEUE CREATE still TRIES 3\r\nQUEUE PAUSE still OUT\r\nQUEUE PAUSE mail IN\r\n"
                        b"GROUP PAUSE acme\r\nPULSE CREATE p RATE 5\r\n")
        found.cluster.now_ms += 2 * 3_600_000
        await found.samples.sample()
        page = await found.get("/")
        for text in (
            "n2</a> is 5,000 entries behind", "the clock of n2 is 3.0 s behind", "n3</a> is switched offline",
            '1 dead job</a> of <a href="/queue?name=mail">mail</a>, the first died ',
            "still</a> hands out no jobs", "mail</a> takes no jobs",
            'the group <a href="/groups?name=acme">acme</a> by a pause; 0 jobs of it wait',
            "put over an hour ago runs without a lease",
            'nobody takes the jobs of <a href="/queue?name=mail">mail</a>: 1 job waits, the oldest for <time data-ms="',
            ">2.0 h</time>, and none runs",
        ):
            assert text in page, text
        assert page.index("dead job") < page.index("is switched offline")       # severe things come first

    run(test)


def test_certificates_that_expire_soon_are_listed() -> None:
    async def test(found: Site) -> None:
        found.dashboard._certificates = lambda: [
            ("tls.certificate", time.time() + 3.1 * 86_400), ("tls.authority", time.time() + 90 * 86_400),
            ("tls.client", time.time() + 1.1 * 86_400)]
        page = await found.get("/")
        assert "the certificate tls.certificate of n1 expires in 3 days" in page
        assert "the certificate tls.client of n1 expires in 1 day<" in page
        assert "tls.authority" not in page

    run(test)


def test_a_user_sees_what_concerns_their_queues_only() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT mail_a 0 1\r\nxPUT secret 0 1\r\nxGET mail_a\r\nGET secret\r\nBURY 1\r\nBURY 2\r\n"
                        b"QUEUE CREATE concealed TRIES 3\r\nQUEUE PAUSE concealed OUT\r\nGROUP PAUSE acme\r\n")
        found.cluster.now_ms += 600_000
        await found.samples.sample()
        for path in ("/", "/queues", "/queues?state=paused"):
            assert "concealed" in await found.get(path)
        found.user = "max"
        page = await found.get("/")
        assert "mail_a" in page
        for name in ("secret", "concealed", "acme"):
            assert name not in page
        assert (await found.ask("GET", "/figures?of=queue&name=mail_a"))[0] == 200
        assert (await found.ask("GET", "/figures?of=queue&name=secret"))[0] == 404
        found.user = "bare"
        assert "mail_a" not in await found.get("/")

    run(test, Users())


def test_each_node_has_a_card_with_its_memory_and_disk() -> None:
    async def test(found: Site) -> None:
        nodes(found, WELL[0], replace(WELL[1], host=None), replace(WELL[2], role="DOWN"))
        page = await found.get("/")
        cards = page.split('<div class="card ')[1:]
        assert len(cards) == 3
        assert ">200.0 MiB <small class=\"whole\">of 1.0 GiB<" in cards[0]
        assert "40.0 GiB" in cards[0]
        assert "disk free" not in cards[1]          # an older version does not say
        assert "lag" not in cards[2]

    run(test)


def test_a_page_has_the_addresses_of_the_other_nodes_for_when_it_is_stale() -> None:
    async def test(found: Site) -> None:
        nodes(found, *WELL)
        page = await found.get("/queues")
        assert re.search(r'<div id="stale" role="alert" hidden>', page)
        assert 'href="//10.0.0.2:11363/" data-node="10.0.0.2:11363">n2</a>' in page
        assert "//10.0.0.1:" not in page
        assert http_address("[::1]:11361", 80) == "[::1]:80"
        assert http_address("10.0.0.1:11361", 0) is None

    run(test)


def test_a_node_that_is_behind_says_so() -> None:
    async def test(found: Site) -> None:
        assert why_stale(found.cluster) is None
        found.cluster.silence_s = STALE_S + 4
        why = why_stale(found.cluster)
        assert why is not None
        assert "5 s old" in why
        found.cluster.silence_s = float("inf")
        assert why_stale(found.cluster) == "n1 has heard no leader since it was started"

    run(test)


def listed(page: str) -> list[str]:
    """Return the queues of the table, in order."""
    return re.findall(r'<td><a href="/queue\?name=[^"]*">([^<]*)</a>', page)


async def look(found: Site, act: Callable[[], Awaitable[object]]) -> None:
    """Sample the flows before and after these operations."""
    found.samples.flows = Flows(count().__next__)        # a second from one look to the next
    await found.samples.look()
    await act()
    await found.samples.look()


def test_queues_are_sorted_by_rates_and_filtered_by_what_is_wrong_with_them() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT a 0 1\r\nxPUT b 0 1\r\nxPUT c 0 1\r\nxGET a\r\nBURY 1\r\nGET b\r\n"
                        b"QUEUE CREATE d TRIES 3\r\nQUEUE PAUSE d OUT\r\n")
        await look(found, lambda: found.say(b"PUT b 0 1\r\nx" + b"PUT c 0 1\r\nx" * 5))
        assert listed(await found.get("/queues?sort=in"))[:2] == ["c", "b"]
        assert listed(await found.get("/queues?sort=waiting"))[0] == "c"
        for state, names in (
            ("paused", ["d"]), ("with+dead+or+buried+jobs", ["a"]), ("waiting,+and+none+runs", ["c"]),
            ("without+jobs", ["a", "d"]), ("nonsense", ["a", "a_dead", "b", "c", "d"]),
        ):
            page = await found.get(f"/queues?state={state}")
            assert listed(page) == names, state
        page = await found.get("/queues?state=paused&sort=dead&search=d")
        assert 'value="paused" selected' in page
        assert "state=paused&amp;sort=waiting" in page      # the heads keep what is shown
        assert "PAUSED" in page.upper()
        page = await found.get("/queues")
        assert re.findall(r'(\w+)</a> <small>dead jobs of <a href="/queue[?]name=a">a</a>', page) == ["a_dead"]

    run(test)


def test_assets_are_kept_by_browsers_as_long_as_they_are_what_the_page_asks_for() -> None:
    async def test(found: Site) -> None:
        page = await found.get("/")
        for path in re.findall(r'(?:src|href)="(/assets/[^"]*)"', page):
            status, headers, _ = await found.ask("GET", path)
            assert (status, headers["Cache-Control"]) == (200, "private, max-age=31536000, immutable"), path
            status, headers, _ = await found.ask("GET", path.partition("?")[0])
            assert (status, headers["Cache-Control"]) == (200, "no-store")
        assert "uplot.js" in page
        assert f"//{HOST}" not in page.replace("data-node", "")

    run(test)


def test_the_node_that_will_be_without_room_first_is_named() -> None:
    names = {"n1": HostFigures(200 << 20, 1 << 30, 40 << 30, 1 << 30), "n2": HostFigures(900 << 20, 1 << 30, 40 << 30),
             "n3": HostFigures(100 << 20, 1 << 30, 2 << 30, 1 << 30)}
    nodes = [NodeStatus(1, name, "", "FOLLOWER", True, 3, 7, 0, "1.0", 0, host=host) for name, host in names.items()]
    assert nearest_limit(nodes) == (
        "The node nearest to a limit is n2, which uses 900.0 MiB of 1.0 GiB of memory to its mark.")
    assert nearest_limit([nodes[0], nodes[2]]) == (
        "The node nearest to a limit is n3, which has 2.0 GiB of disk left and needs 1.0 GiB.")
    full = replace(nodes[0], name="n4", host=HostFigures(0, 0, 0, 1 << 30))
    assert nearest_limit([*nodes, full]) == (
        "The node nearest to a limit is n4, which has 0 B of disk left and needs 1.0 GiB.")
    assert nearest_limit([replace(nodes[1], role="DOWN")]) is None
    assert nearest_limit([replace(nodes[1], host=None)]) is None


def test_groups_whose_jobs_are_held_back_are_listed_with_what_does_it() -> None:
    async def test(found: Site) -> None:
        await found.say(b"GROUP CONFIG ann LIMIT 1\r\nGROUP CONFIG bob LIMIT 5\r\nQUEUE CREATE mail SCHED FAIR\r\n")
        for name in (b"ann", b"ann", b"ann", b"bob"):
            await found.say(b"PUT mail 0 1 GROUP %s\r\nx" % name)
        assert "held back" not in await found.get("/")
        for _ in range(2):
            await found.say(b"GET mail BY FAIR\r\n")
        assert "ann</a> by its limit, as 1 run; 2 jobs of it wait" in await found.get("/")
        rows = re.findall(r'href="/groups[?]name=([a-z]*)"', await found.get("/groups?sort=held+back"))
        assert rows[0] == "ann"

    run(test)


def test_a_queue_whose_jobs_nobody_takes_stands_out_from_slow_ones_and_from_those_held_back() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT slow 0 1\r\nxPUT slow 0 1\r\nxGET slow\r\nPUT left 0 1\r\nxPUT left 0 1\r\nx"
                        b"QUEUE CREATE fair SCHED FAIR\r\nGROUP PAUSE ann\r\nPUT fair 0 1 GROUP ann\r\nx")
        found.cluster.now_ms += 1_200_000
        await found.samples.sample()
        page = await found.get("/")
        assert re.search(
            r'<li class="bad"><span class="word">no worker</span><span>nobody takes the jobs of '
            r'<a href="/queue[?]name=left">left</a>: 2 jobs wait, the oldest for '
            r'<time data-ms="[0-9]+" data-since="yes">20 min</time>, and none runs<', page)
        assert re.findall("nobody takes the jobs of <[^>]*>([a-z]*)<", page) == ["left"]
        assert re.search("in <[^>]*>slow</a> 1 job waits, the oldest for <[^>]*>20 min</time>; 1 job runs<", page)
        assert re.search("in <[^>]*>fair</a> 1 job waits, the oldest for <[^>]*>20 min</time>, "
                         "1 of them held back; 0 jobs run<", page)

    run(test)


def test_a_queue_of_records_that_are_looked_up_needs_no_worker() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT results 0 1 KEY a TTL 86400\r\nxPUT results 0 1 KEY b TTL 86400\r\nx"
                        b"PUT keyed 0 1 KEY a\r\nxPUT passing 0 1 TTL 86400\r\nx"
                        b"PUT mixed 0 1 KEY a TTL 86400\r\nxPUT mixed 0 1\r\nx")
        found.cluster.now_ms += 1_200_000
        await found.samples.sample()
        page = await found.get("/")
        assert sorted(re.findall("nobody takes the jobs of <[^>]*>([a-z]*)<", page)) == ["keyed", "mixed", "passing"]

    run(test)


def waited(found: Site, queue: str, *counts: int) -> None:
    """Give the queue a course in which so many jobs waited in each of the last minutes; 3 a second came, 2 left."""
    found.samples._clock = lambda: NOW_S
    found.samples.queue(queue)
    course = found.samples.queues.courses[queue]
    for minute, waiting in enumerate(counts, start=NOW_S // 60 - len(counts) + 1):
        row = {"waiting": waiting, "put": 2.5, "failed": 0.5, "taken": 2, "running": 1}
        for second in (0, 30):
            course.add(minute * 60 + second, [row.get(field.name, 0) for field in course.fields])


def test_a_queue_whose_backlog_grows_while_workers_are_there_is_listed() -> None:
    async def test(found: Site) -> None:
        for name in (b"grows", b"waves", b"few", b"vast", b"left", b"drained"):
            await found.say(b"PUT %s 0 1\r\nx" % name * (3 if name == b"drained" else 25))
        for name in (b"grows", b"waves", b"few", b"vast", b"drained"):
            await found.say(b"GET %s\r\n" % name)
        waited(found, "grows", 100, 200, 300, 400, 500)
        waited(found, "waves", 100, 200, 180, 400, 500)
        waited(found, "few", 1, 2, 3, 4, 5)
        waited(found, "vast", *range(1_000_000, 1_000_050, 10))
        waited(found, "left", 200, 300, 400, 500)
        waited(found, "drained", 100, 200, 300, 400, 500)
        page = await found.get("/")
        assert re.findall('class="word">growing</span><span>in <[^>]*>([a-z]*)<', page) == ["grows"]
        assert re.search("in <[^>]*>grows</a> 24 jobs wait, 400 more than 4 minutes ago, the oldest for "
                         "<[^>]*>[^<]*</time>; 3.0/s came and 2.0/s were handed out; 1 job runs<", page)
        assert 'class="word">growing' in await found.get("/queue?name=grows")
        assert 'class="word">growing' not in await found.get("/queue?name=few")
        found.cluster.now_ms += 1_200_000
        await found.samples.oldest.look(found.cluster)
        page = await found.get("/")
        assert page.count(">grows</a> 24 jobs wait") == 1            # old as well, and still one line
        assert 'class="word">growing</span><span>in <a href="/queue?name=grows"' in page
        assert "400 more" in page
        for number in range(10):
            await found.say(b"PUT old%d 0 1\r\nx" % number)
        found.cluster.now_ms += 1_200_000
        for name in ("more", "yet"):
            await found.say(f"PUT {name} 0 1\r\nx".encode() * 25 + f"GET {name}\r\n".encode())
            waited(found, name, 100, 200, 300, 400, 500)
        found.cluster.now_ms += 1_200_000
        await found.samples.oldest.look(found.cluster)
        page = await found.get("/")             # many queues that are older hide none that grows
        assert sorted(re.findall('class="word">growing</span><span>in <[^>]*>([a-z]*)<', page)) == [
            "grows", "more", "yet"]
        await found.say(b"QUEUE PAUSE grows OUT\r\n")
        assert ">grows</a> 24 jobs wait, 400 more" not in await found.get("/")

    run(test)


def test_queues_that_grow_because_they_are_paused_hide_none_that_grows() -> None:
    async def test(found: Site) -> None:
        for number in range(12):
            name = f"paused{number}"
            await found.say(f"PUT {name} 0 1\r\nx".encode() * 25 + f"QUEUE PAUSE {name} OUT\r\n".encode())
            waited(found, name, 1000, 2000, 3000, 4000, 5000)
        await found.say(b"PUT grows 0 1\r\nx" * 25 + b"GET grows\r\n")
        waited(found, "grows", 100, 200, 300, 400, 500)
        page = await found.get("/")
        assert re.findall('class="word">growing</span><span>in <[^>]*>([a-z]*)<', page) == ["grows"]
        assert page.count('class="word">paused') == 6           # five, and a line for the others

    run(test)


def marks(page: str) -> dict[str, list[str]]:
    """Return the marks of each queue of the table."""
    rows = re.findall(r'<tr><td><a href="/queue\?name=[^"]*">([^<]*)</a>(.*?)</td>', page)
    return {name: re.findall(r'<strong class="mark(?: severe)?">(.*?)</strong>', rest) for name, rest in rows}


def test_queues_of_the_table_are_marked_with_what_keeps_their_jobs_waiting() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT left 0 1\r\nx" + b"PUT taken 0 1\r\nx" * 25 + b"GET taken\r\n"
                        b"QUEUE CREATE full LIMIT 1\r\nPUT full 0 1\r\nxPUT full 0 1\r\nxGET full\r\n"
                        b"PUT still 0 1\r\nxQUEUE PAUSE still OUT\r\nPUT mail 0 1\r\nxGET mail\r\n")
        await found.say(b"BURY 3\r\n")
        assert marks(await found.get("/queues"))["left"] == []          # for a moment
        found.cluster.now_ms += 1_200_000
        waited(found, "taken", 100, 200, 300, 400, 500)
        assert marks(await found.get("/queues")) == {
            "full": ["1 held back"], "left": ["no worker"], "mail": [], "mail_dead": [], "still": ["paused"],
            "taken": ["growing"],
        }

    run(test)


def test_pictures_are_of_the_time_for_which_there_are_figures() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT mail 0 1\r\nx")
        found.samples._clock = lambda: NOW_S
        for ago_s, span, began, links in (
            (20, "minute", "60 s", "10 minutes"), (200, "4 minutes", "4 min", "10 minutes"),
            (1510, "26 minutes", "26 min", "hour"), (4000, "hour", None, "hour"),
        ):
            found.samples.cluster.first_s = NOW_S - ago_s
            page = await found.get("/")
            assert re.findall("figures began ([^<]*) ago", page) == [began] * (began is not None)
            assert f'aria-current="true">{links}</a>' in page
            assert f"the pictures are of the last {span}<" in await found.get("/queues")

    run(test)


def test_the_page_of_the_cluster_has_memory_and_disk_of_every_node() -> None:
    async def test(found: Site) -> None:
        room = WELL[1].host
        assert room is not None
        nodes(found, WELL[0], replace(WELL[1], online=False, host=replace(room, disk_free_bytes_min=1 << 30)),
              replace(WELL[2], role="DOWN"))
        page = await found.get("/cluster")
        rows = [re.sub("<[^>]*>", "|", row) for row in re.findall("<tr><td>(n[0-9].*?)</tr>", page)]
        assert "|200.0 MiB |of 1.0 GiB|" in rows[0]
        assert "|40.0 GiB|" in rows[0]
        assert "|offline|" in rows[1]
        assert "|40.0 GiB |needs 1.0 GiB|" in rows[1]
        assert "GiB" not in rows[2]                     # what is known of it is old

    run(test)


def test_a_paused_queue_has_one_line_with_what_waits_in_it() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT mail 0 1\r\nxPUT mail 0 1\r\nxQUEUE PAUSE mail OUT\r\n")
        found.cluster.now_ms += 600_000
        await found.samples.sample()
        page = await found.get("/")
        line = re.search(r'<span class="word">paused</span><span>(.*?)</span></li>', page)
        assert line is not None
        assert re.sub("<[^>]*>", "", line[1]) == "mail hands out no jobs: 2 jobs wait, the oldest for 10 min"
        assert 'class="word">waiting' not in page
        assert 'class="word">no worker' not in page
        assert "of them held back" not in page

    run(test)


def test_any_node_that_is_short_of_room_is_listed() -> None:
    """Not only the one whose page it is: who looks at the leader has to see which follower will be missing."""
    async def test(found: Site) -> None:
        room = WELL[2].host
        assert room is not None
        for host, colour, text in (
            (replace(room, disk_free_bytes=5 << 30, disk_free_bytes_min=4 << 30), "warn",
             "n3</a> has only 5.0 GiB of disk left and needs 4.0 GiB"),
            (replace(room, disk_free_bytes=0, disk_free_bytes_min=4 << 30), "bad",
             "n3</a> has only 0 B of disk left and needs 4.0 GiB"),
            (replace(room, memory_used_bytes=1000 << 20), "warn",
             "n3</a> uses 1.0 GiB of memory, near its mark, 1.0 GiB"),
            (replace(room, memory_used_bytes=2 << 30), "bad",
             "n3</a> uses 2.0 GiB of memory, more than its mark, 1.0 GiB"),
        ):
            nodes(found, *WELL[:2], replace(WELL[2], host=host))
            page = await found.get("/")
            item = re.search('<li class="([a-z]*)">(?:(?!</li>).)*' + re.escape(text), page)
            assert item is not None, text
            assert item[1] == colour, text
            nodes(found, *WELL[:2], replace(WELL[2], host=host, role="DOWN"))
            assert text not in await found.get("/")
        nodes(found, *WELL)
        assert verdict(await found.get("/"))[1] == "all is well"

    run(test)
