"""The pages and actions of the dashboard over HTTP, in front of the fake cluster."""

from __future__ import annotations

import asyncio
import base64
import html
import logging
import re
from pathlib import Path
from urllib.parse import quote, urlencode

import pytest

from sockpqd.cluster import Histogram
from sockpqd.cluster.api import NodeStatus, NotLeader, OutcomeUnknown, PagingFigures
from sockpqd.core import Machine
from sockpqd.core.pages.paging_counts import PagingCounts
from sockpqd.gateway.dashboard.forms import FIELD_BYTES_MAX, FIELDS_MAX, FORM_BYTES_MAX
from sockpqd.gateway.dashboard.pages.cluster import who_may_be_lost
from sockpqd.gateway.dashboard.pages.parts.view import PAGES, NotThere, View, whom
from sockpqd.gateway.dashboard.site import PAGES as SHOWN
from sockpqd.gateway.dashboard.site import PAGES_AT_ONCE
from sockpqd.gateway.monitoring.http import CONNECTIONS_MAX
from sockpqd.gateway.replica import OriginSettings, Phase, Puller
from tests.gateway.helpers.dashboard import HOST, PATIENCE_S, XSS, Site, Users, run
from tests.gateway.helpers.fake_mirror import FakeMirror


async def fill(found: Site) -> None:
    await found.say(b"PUT mail 5 5 KEY a1 TTL 600\r\nhelloPUT mail 0 7\r\n{\"a\":1}PUT other 0 2\r\nxx"
                    b"PUT mail 0 1 DELAY 60\r\nd"
                    b"GET mail EXPIRE 60 COUNT 1\r\nPUT w 0 1\r\nbGET w\r\nBURY 2 REASON bad\r\n")


def test_every_page_is_there_and_says_what_it_should() -> None:
    async def test(found: Site) -> None:
        await fill(found)
        assert "LEADER" in await found.get("/")
        assert "may be lost" in await found.get("/")
        listed = await found.get("/queues")
        assert ">mail</a>" in listed
        assert ">other</a>" in listed
        for tab, text in (("READY", "{&quot;a&quot;:1}"), ("DELAYED", "in 60 s"), ("RUNNING", "lease ends in"),
                          ("RUNNING", "hello"), ("BURIED", "No job is buried"), ("ENDED", "no record of an ended job")):
            assert text in await found.get(f"/queue?name=mail&tab={tab}"), text
        assert "{&quot;a&quot;:1}" in await found.get("/queue?name=mail&tab=nothing")
        assert "<td>bad</td>" in await found.get("/queue?name=w")
        assert "0 sessions" in await found.get("/sessions")
        assert "No users are required" in await found.get("/users")
        assert "There is no pulse" in await found.get("/pulses")
        await found.get("/queue?name=nope", 404)
        await found.get("/job?id=77", 404)
        await found.get("/job?id=" + "9" * 40, 404)
        await found.get("/job", 404)
        assert (await found.ask("GET", "/nothing"))[0] == 404
        assert (await found.ask("POST", "/queues"))[0] == 405
        assert (await found.ask("GET", "/act"))[0] == 405
        assert (await found.ask("HEAD", "/"))[2] == ""

    run(test)


def test_the_page_of_a_replica_says_how_far_behind_it_is(tmp_path: Path) -> None:
    async def test(found: Site) -> None:
        assert "Replica" not in await found.get("/cluster")
        origin = OriginSettings((("127.0.0.1", 1),), None, None, None)
        puller = found.hub.puller = Puller(FakeMirror(), origin, tmp_path, asyncio.get_running_loop().time)
        assert "the leader of the replica follows the origin" in await found.get("/cluster")
        puller.figures.phase, puller.figures.server = Phase.FOLLOWING, "10.1.0.1:11361"
        puller.figures.executed = 12
        puller.figures.caught_up_at = asyncio.get_running_loop().time() - 720_000
        page = await found.get("/cluster")
        assert "10.1.0.1:11361" in page
        assert "12 entries, 720" in page

    run(test)


def test_it_is_shown_how_many_jobs_are_on_the_disk() -> None:
    async def test(found: Site) -> None:
        assert "on the disk" not in await found.get("/cluster")
        found.cluster.paging = PagingFigures(
            jobs=4711, data_bytes=1 << 20, bodies=12, body_bytes=3 << 16, file_bytes=2 << 20, files=3,
            live_bytes=1 << 19, rewriting=1, read=7, written=9, expected=6, misses=2, moved=0, reads=Histogram(),
        )
        page = await found.get("/cluster")
        assert "4711, with 1.0 MiB of data" in page
        assert "12 of jobs in any state, 192.0 KiB" in page
        assert "3 of 2.0 MiB, 25% needed; 1 being rewritten" in page
        assert "7 read, 6 in advance; 2 were not in memory in time" in page

    run(test)


def test_the_page_of_a_queue_tells_what_of_it_is_on_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT mail 0 3\r\nabc")
        assert "on the disk" not in await found.get("/queue?name=mail")
        monkeypatch.setattr(Machine, "on_disk", lambda machine, queue: PagingCounts(1, 3 << 10))
        assert "1 waiting, 3.0 KiB of data" in await found.get("/queue?name=mail")

    run(test)


def test_a_job_is_shown_as_text_json_and_hex() -> None:
    async def test(found: Site) -> None:
        await found.say(b'PUT mail 0 13 KEY j\r\n{"a":[1,"<"]}PUT mail 0 3 KEY b\r\n\x00\xff\x1b')
        assert "&quot;&lt;&quot;" in await found.get("/job?queue=mail&key=j")
        assert "[1,&quot;&lt;&quot;]" in await found.get("/job?queue=mail&key=j&form=text")
        assert "7b 22 61" in await found.get("/job?queue=mail&key=j&form=hex")
        assert "00 ff 1b" in await found.get("/job?queue=mail&key=b")
        shown = await found.get("/job?queue=mail&key=b&form=text")
        assert "\\x00\\xff\\x1b" in shown.replace("\\\\", "\\")
        assert "\x1b" not in shown

    run(test)


def test_a_buried_job_is_shown_and_kicked() -> None:
    async def test(found: Site) -> None:
        number = (await found.say(b"PUT tube/a 0 3 NUMBER\r\nabc")).split()[-1].decode()
        taken = (await found.say(b"GET tube/a\r\n")).split()[3]
        await found.say(b"BURY %s HERE REASON broken\r\n" % taken)
        page = await found.get("/queue?name=tube%2Fa")
        assert "BURIED" in page
        assert "broken" in page
        assert f"number={number}" in page
        assert "sort=buried" in await found.get("/queues?search=tube")
        assert "job.retry" in await found.get(f"/job?queue=tube%2Fa&number={number}")
        status, to, _ = await found.act("job.retry", queue="tube/a", number=number)
        assert status == 303
        assert f"KICK JOB NUMBER {number}: 200 OK 1" in await found.get(to)
        assert (await found.say(b"QUEUE LIST tube*\r\n")).endswith(b"tube/a 1 0 0 0 0\r\n")

    run(test)


def test_nothing_a_stranger_writes_becomes_part_of_a_page() -> None:
    async def test(found: Site) -> None:
        body = XSS.encode()
        await found.say(b"PUT mail 0 %d KEY a1\r\n%s" % (len(body), body))
        for path in ("/queue?name=mail", "/job?queue=mail&key=a1", "/job?queue=mail&key=a1&form=text"):
            page = await found.get(path)
            assert "<script>alert" not in page
            assert "<img" not in page
            assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
        for path in (f"/queues?search={quote(XSS)}&sort={quote(XSS)}&first={quote(XSS)}", f"/queues?note={quote(XSS)}"):
            assert "<script>alert" not in await found.get(path)
        assert "<script>alert" not in await found.get(f"/topics?name={quote(XSS)}")
        for path in (f"/queue?name={quote(XSS)}", f"/job?queue={quote(XSS)}&key={quote(XSS)}"):
            assert "<script>alert" not in await found.get(path, 404)
        status, _, page = await found.act("queue.pause", queue=XSS, direction="IN")
        assert status == 400
        assert "<script>" not in page
        status, _, page = await found.act("queue.create", queue=XSS.replace(" ", ""), back=XSS)
        assert status == 409
        assert "<script>alert" not in page
        assert html.escape("><script>") in page

    run(test)


def test_actions_are_commands() -> None:
    async def test(found: Site) -> None:
        await fill(found)
        status, to, _ = await found.act("queue.create", queue="new", settings="LIMIT 5  TRIES 3", back="/queues")
        assert (status, to.partition("?")[0]) == (303, "/queues")
        assert "QUEUE CREATE new LIMIT 5 TRIES 3: 200 OK" in await found.get(to)
        assert "TRIES 3: 200" not in await found.get(to)        # it is told once
        assert (await found.act("queue.create", queue="new"))[0] == 409
        for action, fields, line in (
            ("queue.pause", {"queue": "mail", "direction": "OUT"}, "QUEUE PAUSE mail OUT"),
            ("queue.resume", {"queue": "mail"}, "QUEUE RESUME mail"),
            ("queue.config", {"queue": "mail", "settings": "TRIES 2"}, "QUEUE CONFIG mail TRIES 2"),
            ("job.put", {"queue": "mail", "priority": "-3", "body": "grüße\n", "options": "KEY k"},
             "PUT mail -3 8 KEY k"),
            ("job.change", {"queue": "mail", "key": "k", "priority": "7", "delay": "", "body": "xy"},
             "CHANGE KEY mail k PRI 7 DATA 2"),
            ("job.delete", {"queue": "mail", "key": "k"}, "DELETE KEY mail k"),
            ("job.kick", {"queue": "w", "count": "10"}, "KICK w 10"),
            ("job.kick_here", {"queue": "w", "count": "10"}, "KICK w 10 HERE"),
            ("queue.purge", {"queue": "w", "state": "BURIED"}, "QUEUE PURGE w BURIED"),
            ("job.later", {"id": "1"}, "LATER 1"),
            ("queue.purge", {"queue": "mail", "state": "ALL"}, "QUEUE PURGE mail ALL"),
            ("queue.delete", {"queue": "new"}, "QUEUE DELETE new FORCE"),
            ("job.put", {"queue": "a", "priority": "0", "body": "x"}, "PUT a 0 1"),
            ("queue.move", {"queue": "a", "to": "b", "count": "", "died": ""}, "QUEUE MOVE a b"),
            ("queue.move", {"queue": "b", "to": "c", "count": "3", "died": "a"}, "QUEUE MOVE b c COUNT 3 DIED a"),
            ("queue.purge", {"queue": "b", "state": "RUNNING"}, "QUEUE PURGE b RUNNING"),
            ("queue.purge", {"queue": "b", "state": "OWN"}, "QUEUE PURGE b OWN"),
            ("job.put", {"queue": "a", "priority": "0", "body": "x"}, "PUT a 0 1"),
            ("queue.delete", {"queue": "a", "dead": "LEAVE"}, "QUEUE DELETE a FORCE LEAVE"),
            ("cluster.offline", {}, "CLUSTER OFFLINE"), ("cluster.online", {}, "CLUSTER ONLINE"),
            ("node.offline", {}, "OFFLINE"), ("node.online", {}, "ONLINE"), ("node.snapshot", {}, "CLUSTER SNAPSHOT"),
        ):
            status, to, page = await found.act(action, **fields)
            assert status == 303, (action, page)
            assert f"{line}: 200" in html.unescape(await found.get(to)), action
        assert (await found.say(b"TOTAL mail\r\n")).startswith(b"200 OK 1 0 0 ")

    run(test)


@pytest.mark.parametrize(("action", "fields"), [
    ("nothing", {}), ("", {}), ("queue.pause", {"queue": "mail", "direction": "x"}),
    ("queue.pause", {"direction": "IN"}), ("queue.delete", {"queue": "mail FORCE"}),
    ("queue.delete", {"queue": "mail\r\nSHUTDOWN"}), ("queue.delete", {"queue": ""}),
    ("job.bury", {"id": "1 2"}), ("job.bury", {"id": "x"}), ("job.put", {"queue": "mail", "priority": ""}),
    ("queue.create", {"queue": "q", "settings": "A \x00B"}), ("job.kick", {"queue": "w", "count": "1\n2"}),
    ("user.delete", {"user": "a b"}), ("cluster.transfer", {"node": "a b"}),
])
def test_a_wrong_form_is_refused_and_nothing_is_executed(action: str, fields: dict[str, str]) -> None:
    async def test(found: Site) -> None:
        await fill(found)
        before = found.cluster.machine.index
        status, _, page = await found.act(action, **fields)
        assert status == 400, page
        assert found.cluster.machine.index == before

    run(test)


def test_harm_is_asked_about_first() -> None:
    async def test(found: Site) -> None:
        await fill(found)
        form = {"token": await found.token(), "action": "queue.delete", "queue": "mail"}
        status, _, page = await found.ask("POST", "/act", urlencode(form))
        assert status == 200
        assert "Are you sure?" in page
        assert 'name="sure" value="yes"' in page
        assert found.cluster.machine.counts("mail") is not None

    run(test)


def test_forms_of_other_pages_do_nothing() -> None:
    async def test(found: Site) -> None:
        await fill(found)
        good = await found.token()
        form = urlencode({"action": "queue.delete", "queue": "mail", "sure": "yes"})
        for token in ("", "x", good[:-1] + ("0" if good[-1] != "0" else "1")):
            status, _, page = await found.ask("POST", "/act", f"{form}&token={token}")
            assert (status, "too old" in page) == (403, True)
        for headers in ({"Origin": "http://evil.example"}, {"Sec_Fetch_Site": "cross-site"}, {"Origin": "null"},
                        {"Origin": "http://["},
                        {"Sec_Fetch_Site": "same-site"}):
            assert (await found.ask("POST", "/act", f"{form}&token={good}", **headers))[0] == 403
        assert found.cluster.machine.counts("mail") is not None
        host = f"{HOST}:{found.http.address[1]}"
        status, _, _ = await found.ask("POST", "/act", f"{form}&token={good}", Origin=f"http://{host}")
        assert status == 303
        assert found.cluster.machine.counts("mail") is None
        assert (await found.ask("POST", "/act", "x" * (FORM_BYTES_MAX + 1)))[0] in (403, 413)

    run(test)


def test_where_nobody_proves_anything_a_stranger_s_name_is_not_answered() -> None:
    async def test(found: Site) -> None:
        for name, status in (("evil.example", 421), ("evil.example:80", 421), ("localhost", 200), ("[::1]:80", 200),
                             ("10.1.2.3", 200), ("", 421),
                             ("127.0.0.1@evil.example", 421), ("127.0.0.1.evil.example", 421), ("[::1", 421),
                             ("2130706433", 421)):
            assert (await found.ask("GET", "/", Host=name))[0] == status, name

    run(test)


def test_where_to_go_afterwards_is_never_elsewhere() -> None:
    async def test(found: Site) -> None:
        await fill(found)
        for back in ("//evil.example/", "http://evil.example/", "/\\evil.example", "javascript:alert(1)", "/act", "x",
                     "//[::1", "http://[", "/queues\r\nSet-Cookie: a=b"):
            _, to, _ = await found.act("queue.resume", queue="mail", back=back)
            assert to.startswith("/?note="), to

    run(test)


def test_rights_decide_what_is_seen_and_done() -> None:
    async def test(found: Site) -> None:
        for secret in ("wrong", ""):
            found.secret = secret
            status, headers, _ = await found.ask("GET", "/")
            assert (status, headers["WWW-Authenticate"].startswith("Basic")) == (401, True)
        found.secret = "secret"
        for queue in ("mail", "other"):
            assert (await found.act("job.put", queue=queue, priority="0", body="x", options="KEY k"))[0] == 303
        numbered = await found.say(b"PUT other 0 1 NUMBER\r\nx")
        other = await found.say(b"GET other\r\n")
        token = await found.token()
        found.user = "max"
        listed = await found.get("/queues")
        assert ">mail</a>" in listed
        assert "other" not in listed
        await found.get("/queue?name=mail")
        await found.get("/queue?name=other", 403)
        await found.get("/job?queue=other&key=k", 403)
        for word in (f"id={int(other.split()[3])}", "id=99", f"number={int(numbered.split()[3])}", "number=99"):
            assert "There is no such job" in await found.get(f"/job?{word}", 404)
        for path in ("/sessions", "/users", "/slow"):
            await found.get(path, 403)
        assert "Switch" not in await found.get("/")
        assert (await found.act("queue.delete", token, queue="mail"))[0] == 403         # a token of somebody else
        status, _, page = await found.act("queue.delete", queue="other")
        assert (status, "403 Forbidden" in page) == (409, True)
        status, _, page = await found.act("cluster.offline")
        assert (status, "403 Forbidden" in page) == (409, True)
        assert (await found.act("queue.purge", queue="mail", state="READY"))[0] == 303
        found.user = "bare"
        await found.get("/queue?name=mail", 403)
        found.user = "eva"
        assert "the users file" in await found.get("/users")

    run(test, Users())


def test_each_action_leaves_a_line_in_the_audit_log(caplog: pytest.LogCaptureFixture) -> None:
    async def test(found: Site) -> None:
        await found.act("queue.create", queue="new")
        await found.act("queue.create", queue="new")
        await found.act("job.put", queue="new", priority="0", body="very secret")

    with caplog.at_level(logging.INFO, "sockpqd.audit"):
        run(test, Users())
    lines = [record.getMessage() for record in caplog.records if record.name == "sockpqd.audit"]
    assert lines == [
        "user=eva address=127.0.0.1 action=queue.create object='QUEUE CREATE new' outcome='200 OK'",
        "user=eva address=127.0.0.1 action=queue.create object='QUEUE CREATE new' outcome='409 Queue Exists'",
        "user=eva address=127.0.0.1 action=job.put object='PUT new 0 11' outcome='200 OK'",
    ]


def test_the_header_says_whom_a_node_takes_for_the_leader() -> None:
    assert whom("n1", "n2") == "follows n2"
    assert whom("n1", None) == "knows no leader"
    assert whom("n1", "n1") == "leads, but does not serve at the moment"     # as before its first entry


def test_a_follower_asks_the_leader() -> None:
    async def test(found: Site) -> None:
        asked: list[tuple[str | None, str, bytes]] = []
        outcome: list[bytes | Exception] = [b"200 OK\r\n", NotLeader(), OutcomeUnknown()]

        async def forward_command(user: str | None, address: str, command: bytes) -> bytes:
            asked.append((user, address, command))
            now = outcome.pop(0)
            if isinstance(now, Exception):
                raise now
            return now

        found.cluster.follow("n2")
        found.cluster.forward_command = forward_command       # type: ignore[attr-defined]
        assert (await found.act("queue.create", queue="q"))[0] == 303
        assert asked == [("eva", "127.0.0.1:HTTP", b"QUEUE CREATE q\r\n")]
        status, _, page = await found.act("queue.create", queue="q")
        assert (status, "no node leads" in page) == (409, True)
        status, _, page = await found.act("queue.create", queue="q")
        assert (status, "nobody knows" in page) == (409, True)
        assert (await found.act("node.offline"))[0] == 303      # of this node: nobody is asked
        assert len(asked) == 3

    run(test, Users())


def test_a_browser_is_told_of_changes() -> None:
    async def test(found: Site) -> None:
        reader, writer = await asyncio.open_connection(*found.http.address)
        writer.write(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        text = b""
        while text.count(b"data: ") < 2:
            text += await asyncio.wait_for(reader.read(1000), PATIENCE_S)
        writer.close()
        assert b"Content-Type: text/event-stream" in text

    run(test)


def test_a_browser_is_told_no_more_when_its_user_is_gone() -> None:
    async def test(found: Site) -> None:
        reader, writer = await asyncio.open_connection(*found.http.address)
        secret = base64.b64encode(b"max:secret").decode()
        writer.write(f"GET /live HTTP/1.1\r\nHost: localhost\r\nAuthorization: Basic {secret}\r\n\r\n".encode())
        text = b""
        while b"data: " not in text:
            text += await asyncio.wait_for(reader.read(1000), PATIENCE_S)
        found.hub.access.file_users = {}
        rest = await asyncio.wait_for(reader.read(-1), PATIENCE_S)
        assert rest.count(b"event: age") <= 1           # of at least seven
        writer.close()

    run(test, Users())


def test_assets_are_ours_and_load_nothing() -> None:
    async def test(found: Site) -> None:
        for path, kind in (("/assets/style.css", "text/css"), ("/assets/script.js", "text/javascript")):
            status, headers, body = await found.ask("GET", path)
            assert (status, headers["Content-Type"]) == (200, f"{kind}; charset=utf-8")
            assert not re.search(r"https?://|@import|url\(", body)

    run(test)


def test_who_may_be_lost() -> None:
    def node(name: str, role: str) -> NodeStatus:
        return NodeStatus(1, name, "h:1", role, True, 1, 1, 0, "1", 0)

    def told(*roles: str) -> str:
        return who_may_be_lost([node(f"n{number}", role) for number, role in enumerate(roles)])

    assert told("LEADER", "FOLLOWER", "FOLLOWER") == "3 of 3 nodes are up: any one may be lost without harm."
    five = told("LEADER", "FOLLOWER", "FOLLOWER", "FOLLOWER", "FOLLOWER", "LEARNER")
    assert five.endswith("any 2 may be lost without harm.")
    assert told("LEADER", "FOLLOWER", "DOWN") == "2 of 3 nodes are up: none may be lost."
    assert "none leads" in told("CANDIDATE", "FOLLOWER", "DOWN")
    assert told("CANDIDATE", "DOWN", "DOWN").startswith("Only 1 of 3")


def test_a_waiting_job_without_a_key_is_found_by_its_place() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT mail 0 5\r\nfirstPUT mail 0 6\r\nsecond")
        address = re.search(r'href="(/job\?queue=mail&amp;seq=(\d+))"', await found.get("/queue?name=mail"))
        assert address is not None
        assert "first" in await found.get(html.unescape(address[1]))
        assert (await found.act("job.change", queue="mail", seq=address[2], priority="9"))[0] == 303
        assert (await found.act("job.delete", queue="mail", seq=address[2]))[0] == 303
        await found.get(html.unescape(address[1]), 404)
        assert await found.say(b"GET mail\r\n") == b"200 OK mail 1 0 6\r\nsecond"
        await found.get("/job?queue=nope&seq=5", 404)

    run(test)


def test_the_page_of_events_is_told_them_by_the_script() -> None:
    async def test(found: Site) -> None:
        page = await found.get("/events-live")
        assert 'data-types="' in page
        assert "data-live" not in page
        assert "FINQ" in page

    run(test)


def test_all_pages_are_in_the_navigation_but_those_of_one_thing_and_of_the_search_field() -> None:
    assert {path for _, pages in PAGES for path, _ in pages} == set(SHOWN) - {"/queue", "/job", "/find"}


def test_groups_are_listed_with_what_they_used() -> None:
    async def test(found: Site) -> None:
        await fill(found)
        assert "No fair shares are in use" in await found.get("/groups")
        await found.say(b"PUT mail 0 1 GROUP ann\r\nxPUT mail 0 1 GROUP bob\r\nxGET mail BY FAIR\r\n")
        page = await found.get("/groups?sort=waiting")
        assert "No fair shares are in use" not in page
        for name in ("ann", "bob"):
            assert f'<a href="/groups?name={name}">{name}</a>' in page
        for name in ("mail", "other"):
            assert f"<td>{name} <small>the queue&#x27;s own group</small></td>" in page
        assert ">bob</a>" not in await found.get("/groups?search=an")
        status, to, _ = await found.act("fair.config", settings="CAP 20", back="/groups")
        assert (status, "<dd>20</dd>" in await found.get(to)) == (303, True)
        assert (await found.act("fair.config", settings="CAP x"))[0] == 409
        found.user = "max"
        assert ">ann<" not in await found.get("/groups")                # names of others are not told,
        assert "<td>ann</td>" in await found.get("/groups?search=ann")  # but SCHED GROUP is for everybody
        assert 'name="settings"' not in await found.get("/groups")

    run(test, Users())


def test_a_group_is_shown_with_what_holds_it_back_and_steered() -> None:
    async def test(found: Site) -> None:
        await found.say(b"QUEUE CREATE mail SCHED GROUPS\r\nPUT mail 0 1 GROUP ann\r\nxPUT mail 0 1 GROUP ann\r\nx"
                        b"PUT mail 0 1 GROUP bob\r\nx")
        assert "nothing that is a setting" in await found.get("/groups?name=ann")
        back = "/groups?name=ann"
        for settings in ("LIMIT 1 RATE 1 PER 60", ""):
            status, to, _ = await found.act("group.config", group="ann", settings=settings, back=back)
            assert (status, "<dd>1 job in 60 s</dd>" in await found.get(to)) == (303, True)
        await found.say(b"GET mail\r\n")
        page = await found.get(back)
        assert "its limit, as 1 run, its rate, 6" in page               # more than 60 s: to the end of a slot
        assert '<a href="/queue?name=mail">mail</a>' in page
        status, to, _ = await found.act("group.pause", group="ann", seconds="300", back=back)
        assert "GROUP PAUSE ann FOR 300: 200 OK" in await found.get(to)
        assert "a pause, 5 min more, its limit" in await found.get(back)
        assert "a pause, 5 min more, its limit" in await found.get("/groups")
        status, to, _ = await found.act("group.pause", group="dan", seconds="", back="/groups")
        assert "a pause</strong></td>" in await found.get(to)                    # of a group without jobs
        assert "<p>a pause</p>" in await found.get("/groups?name=dan")
        assert (await found.act("group.resume", group="ann"))[0] == 303
        assert "a pause" not in await found.get(back)
        assert (await found.act("group.delete", group="ann"))[0] == 303
        assert "nothing that is a setting" in await found.get(back)
        assert (await found.act("group.resume", group="ann"))[0] == 409
        await found.get("/groups?name=nobody", 404)
        found.user = "tom"
        assert ">ann</a>" not in await found.get("/groups")
        assert ">bob</a>" in await found.get("/groups")
        assert "group.pause" not in await found.get("/groups?name=bob")
        await found.get(back, 403)
        assert (await found.act("group.pause", group="bob", seconds=""))[0] == 409

    run(test, Users())


def test_items_are_listed_and_retried() -> None:
    async def test(found: Site) -> None:
        assert "No unfinished job belongs" in await found.get("/items")
        await found.say(b"PUT mail 0 1 IS album_7\r\nxPUT mail 0 1 IS order_1\r\nxPUT bill 0 1 AFTER album_7\r\nx"
                        b"GET mail\r\nBURY 1\r\n")
        assert '<a href="/items?name=album_7">album_7</a></td><td class="n">1</td><td class="n">1</td>' in (
            await found.get("/items"))
        assert "album_7" not in (await found.get("/items?search=order")).replace("search=album_7", "")
        page = await found.get("/items?name=album_7")
        assert "<dt>dead</dt><dd>1</dd>" in page
        assert "<dt>waiters</dt><dd>1</dd>" in page
        status, to, _ = await found.act("item.retry", item="album_7", back="/items?name=album_7")
        assert (status, "ITEM RETRY album_7: 200 OK 1" in await found.get(to)) == (303, True)
        assert "<dt>ready</dt><dd>1</dd>" in await found.get("/items?name=album_7")
        await found.say(b"ITEM HOLD album_7\r\n")
        assert "<td>held</td>" in await found.get("/items")
        status, to, _ = await found.act("item.release", item="album_7", back="/items?name=album_7")
        assert "ITEM RELEASE album_7: 200 OK" in await found.get(to)
        await found.say(b"PUT mail 0 1 IS album_8\r\nxGET * IS album_8\r\n")
        status, to, _ = await found.act("item.cancel", item="album_8", back="/items?name=album_8")
        assert "ITEM CANCEL album_8: 200 OK 1" in await found.get(to)
        assert "<td>cancelled</td>" in await found.get("/items")
        await found.get("/items?name=nothing", 404)
        found.user = "tom"
        assert ">order_1</a>" in await found.get("/items")
        assert ">album_7</a>" not in await found.get("/items")
        await found.get("/items?name=album_7", 403)
        assert "item.retry" in await found.get("/items?name=order_1")
        found.user = "max"
        assert "No unfinished job belongs" in await found.get("/items")

    run(test, Users())


def test_topics_are_listed_bound_and_unbound() -> None:
    async def test(found: Site) -> None:
        assert "No queue is bound" in await found.get("/topics")
        for fields in ({"pattern": ""}, {"pattern": "eu.*.#"}):
            assert (await found.act("topic.bind", topic="news", queue="mail", **fields))[0] == 303
        page = await found.get("/topics")
        assert 'href="/topics?name=news"' in page
        assert '<td class="n">2</td>' in page
        page = await found.get("/topics?name=news")
        assert "<code>eu.*.#</code>" in page
        assert "all messages" in page
        assert "No queue is bound to it" in await found.get("/topics?name=olds")
        assert (await found.act("topic.unbind", topic="news", queue="mail", pattern="eu.*.#"))[0] == 303
        assert "<code>eu." not in await found.get("/topics?name=news")
        assert (await found.act("topic.bind", topic="news", queue="mail", pattern="a b"))[0] == 400
        assert (await found.act("topic.delete", topic="news"))[0] == 303
        assert "No queue is bound to it" in await found.get("/topics?name=news")
        await found.act("topic.bind", topic="news", queue="mail")
        found.user = "max"                  # who has rights on mail, but not on @news
        assert "No queue is bound" in await found.get("/topics")
        await found.get("/topics?name=news", 403)

    run(test, Users())


def test_workers_are_listed_and_steered() -> None:
    async def test(found: Site) -> None:
        assert "No worker is running" in await found.get("/workers")
        worker = await found.gateway.connect()
        worker.send(b"SESSION\r\nWORKER pool@host 4 3\r\n")
        await found.gateway.until(lambda: found.cluster.machine.workers())
        page = await found.get("/workers")
        assert '<td>pool@host</td><td>127.0.0.1:' in page
        assert '<td class="n">4</td><td class="n">3</td><td></td><td>its own</td><td>run</td>' in page
        assert (await found.act("worker.state", worker="pool@host", state="PAUSE"))[0] == 303
        assert (await found.act("worker.bounds", worker="pool@host", least="1", most="9"))[0] == 303
        assert "<td>at least 1, at most 9</td><td>pause</td>" in await found.get("/workers")
        for wrong in ({"state": "DANCE"}, {"state": "RUN X"}):
            assert (await found.act("worker.state", worker="pool@host", **wrong))[0] == 400
        assert (await found.act("worker.bounds", worker="pool@host", least="5", most="2"))[0] == 409

    run(test)


def test_periodic_tasks_are_shown_and_what_looks_like_them_is_not() -> None:
    async def test(found: Site) -> None:
        run_ = b'{"task":"app.nightly","cron":{"line":"0 3 * * *","tz":"Europe/Berlin","at":1999999999}}'
        for body in (run_, b"[1]", b'{"cron":5}', b'{"task":1,"cron":{"line":1,"tz":1,"at":1e400}}', b"[" * 20_000,
                     b'{"task":"far","cron":{"line":"x","tz":"y","at":99999999999999999}}'):
            await found.say(b"PUT cron 0 %d KEY k%d DELAY 600\r\n%s" % (len(body), len(body), body))
        page = await found.get("/workers")
        assert 'data-ms="1999999999000"' in page
        assert "<code>0 3 * * *</code>" in page
        assert page.count(">delayed</span></td>") == 2
        assert "app.nightly" not in await found.get("/workers?cron=other")
        assert "Pause all runs" in page
        call = re.search(r'name="body" value="([^"]*nightly[^"]*)"', page)
        assert call is not None
        assert html.unescape(call[1]) == '{"task": "app.nightly"}'
        assert (await found.act("job.put", queue="cron", priority="0", body=html.unescape(call[1])))[0] == 303
        assert (await found.say(b"GET cron\r\n")).endswith(b'{"task": "app.nightly"}')
        await found.act("queue.pause", queue="cron", direction="OUT")
        assert "no run begins until" in await found.get("/workers")
        await found.act("queue.resume", queue="cron")
        assert (await found.act("job.delete", queue="cron", key=f"k{len(run_)}"))[0] == 303
        assert "app.nightly" not in await found.get("/workers")

    run(test)


def test_the_last_runs_of_periodic_tasks_are_shown_while_the_queue_keeps_them() -> None:
    async def test(found: Site) -> None:
        assert "RETAIN 86400" in await found.get("/workers")
        await found.say(b"QUEUE CREATE cron RETAIN 600 NUMBERED 1\r\n")
        await found.say(b'PUT cron 0 22\r\n{"task":"app.nightly"}')
        await found.say(b"GET cron\r\n")
        found.cluster.now_ms += 3000
        await found.say(b"DONE 1\r\n")
        page = await found.get("/workers")
        assert ">app.nightly</a>" in page
        assert '<td>3.0 s</td><td><span class="badge done">done</span></td>' in page

    run(test)


def test_the_jobs_that_run_in_the_session_of_a_worker_are_shown() -> None:
    async def test(found: Site) -> None:
        worker = await found.gateway.connect()
        worker.send(b'SESSION\r\nWORKER w1 2 1\r\nPUT mail 0 15\r\n{"task":"send"}REQ 1 GET mail BOUND\r\n')
        await found.gateway.until(lambda: found.cluster.machine.counts("mail") is not None
                                  and found.cluster.machine.counts("mail").running == 1)
        page = await found.get("/workers")
        assert ">send</a> of mail; " in page

    run(test)


def test_users_are_made_changed_and_deleted_and_their_secrets_are_shown_nowhere(
    caplog: pytest.LogCaptureFixture,
) -> None:
    secret = "correct-horse-battery"

    async def test(found: Site) -> None:
        status, to, _ = await found.act("user.set", user="new", rights="put:mail*  get", secret=secret, back="/users")
        assert (status, secret in to) == (303, False)
        page = await found.get(to)
        assert "USER SET new put:mail*,get: 200 OK" in page
        assert "<td>put:mail*,get</td><td>the cluster</td>" in page
        assert secret not in page
        assert secret.encode().hex() not in page
        assert found.cluster.machine.users["new"].key == secret.encode()
        assert (await found.act("user.set", user="new", rights="", secret=secret))[0] == 303
        assert found.cluster.machine.users["new"].rights == "-"
        for wrong in ("short", "x" * 65, "sixteen letters ", "sechzehn-größer-als"):
            status, _, page = await found.act("user.set", user="new", rights="get", secret=wrong)
            assert (status, wrong in page) == (400, False)
        assert (await found.act("user.set", user="new", rights="dance", secret=secret))[0] == 409
        assert (await found.act("user.set", user="eva", rights="get", secret=secret))[0] == 409      # of the file
        assert (await found.act("user.delete", user="new"))[0] == 303
        assert "new" not in found.cluster.machine.users
        found.user = "max"
        status, _, page = await found.act("user.set", user="max", rights="admin", secret=secret)
        assert (status, "403 Forbidden" in page) == (409, True)

    with caplog.at_level(logging.INFO, "sockpqd.audit"):
        run(test, Users())
    assert "action=user.set object='USER SET new put:mail*,get' outcome='200 OK'" in caplog.text
    assert secret not in caplog.text
    assert secret.encode().hex() not in caplog.text


def test_secrets_do_not_travel_unencrypted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(found: Site) -> None:
        monkeypatch.setattr("sockpqd.gateway.dashboard.visitor.is_loopback", lambda address: False)
        page = await found.get("/users")
        assert 'type="password"' not in page
        assert "over TLS" in page
        status, _, page = await found.act("user.set", user="new", rights="get", secret="correct-horse-battery")
        assert (status, "unencrypted" in page) == (400, True)
        assert not found.cluster.machine.users

    run(test, Users())


def test_dead_jobs_are_not_counted_as_waiting_on_the_page_of_the_cluster() -> None:
    async def test(found: Site) -> None:
        await found.say(b"PUT mail 0 1\r\nxPUT mail 0 1\r\nxGET mail\r\nBURY 1\r\n")
        await found.samples.sample()
        page = await found.get("/cluster")
        assert "<dt>waiting</dt><dd>1</dd>" in page
        assert "<dt>dead</dt><dd>1</dd>" in page
        assert re.search(r'<a href="/dead">Dead jobs <b>1</b></a>', page)

    run(test)


def test_slow_commands_are_shown_without_what_is_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test(found: Site) -> None:
        assert "None was slow" in await found.get("/slow")
        monkeypatch.setattr("sockpqd.gateway.server.pipeline.SLOW_S", -1.0)
        answers = await found.say(b"SESSION\r\nPUT mail 0 11\r\nvery secretGET mail\r\nGET nope\r\nQUEUE STAT mail\r\n"
                                  b"AUTH somebody somewhere\r\n")
        secret = re.search(rb"SESSION (\S+)", answers)
        assert secret is not None
        page = await found.get("/slow")
        monkeypatch.undo()
        rows = re.findall(
            "<td class=\"n(?: zero)?\">\\d+</td><td>(.*?)</td><td>(.*?)</td><td>(.*?)</td><td>-</td>", page)
        assert rows[::-1] == [
            ("SESSION", "", "200 OK"), ("PUT", "mail", "200 OK"), ("GET", "mail", "200 OK"),
            ("GET", "nope", "404 Queue Empty"), ("QUEUE STAT", "mail", "200 OK"), ("AUTH", "", "403 Forbidden"),
        ]
        for hidden in (secret[1].decode(), "very secret", "somebody", "somewhere"):
            assert hidden not in page

    run(test)


def test_the_age_of_what_is_shown_is_told_on_a_follower() -> None:
    async def test(found: Site) -> None:
        assert '<span id="age">the newest</span>' in await found.get("/")
        found.cluster.follow("n2")
        assert "less than 1 s old" in await found.get("/")
        found.cluster.silence_s = 41.7
        assert '<span id="age">42 s old</span>' in await found.get("/queues")
        found.cluster.silence_s = float("inf")
        assert "has heard no leader yet" in await found.get("/")

    run(test)


def test_forms_are_bounded() -> None:
    async def test(found: Site) -> None:
        token = await found.token()
        for fields in ({"queue": "q" * (FIELD_BYTES_MAX + 1)}, {"body": "x" * FORM_BYTES_MAX},
                       {f"f{number}": "" for number in range(FIELDS_MAX)}):
            status, _, page = await found.act("queue.create", token, **fields)
            assert (status, "too large" in page) == (413, True)
        body = "ü%&=+ \n" * 2000
        status, _, page = await found.act("job.put", token, queue="mail", priority="0", body=body)
        assert status == 303, page
        assert (await found.say(b"GET mail\r\n")).endswith(body.encode())

    run(test)


def test_however_many_ask_few_pages_are_made_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    making, most = 0, 0

    async def slow(view: View) -> str:
        nonlocal making, most
        making += 1
        most = max(most, making)
        for _ in range(10):
            await asyncio.sleep(0)
        making -= 1
        if view.word("name") == "gone":
            raise NotThere("It is not there.", ("/queues", "Queues"))
        return "<p>made</p>"

    monkeypatch.setitem(SHOWN, "/queues", slow)

    async def test(site: Site) -> None:
        found = await asyncio.gather(*(
            site.ask("GET", f"/queues?name={'gone' if number % 2 else ''}") for number in range(12)))
        assert [status for status, _, _ in found] == [200, 404] * 6
        assert most == PAGES_AT_ONCE
        assert (await site.ask("GET", "/healthz"))[0] == 200

    run(test)


def test_requests_of_other_kinds_and_paths_get_nowhere() -> None:
    async def test(found: Site) -> None:
        before = found.cluster.machine.index
        for method, path, headers, status in (
            ("GET", "/act", {"X_HTTP_Method_Override": "POST"}, 405), ("PUT", "/act", {}, 405), ("TRACE", "/", {}, 405),
            ("OPTIONS", "/act", {"Origin": "http://evil.example"}, 405), ("DELETE", "/queue?name=mail", {}, 405),
            ("GET", "/assets/../../../../etc/passwd", {}, 404), ("GET", "/assets/%2e%2e/%2e%2e/etc/passwd", {}, 404),
            ("GET", "/assets/style.css%00.html", {}, 404), ("GET", "//queues", {}, 404),
            ("GET", "/queues?first=%C2%B2", {}, 200), ("GET", "/queues?first=-1", {}, 200),
            ("GET", "/queues?first=99999999999999999999", {}, 200), ("GET", "/queues?search=%ed%a0%80%ff%00", {}, 200),
            ("GET", "/queue?name=%ed%a0%80", {}, 404), ("GET", "/job?id=%d9%a1", {}, 404),
        ):
            assert (await found.ask(method, path, **headers))[0] == status, path
        assert found.cluster.machine.index == before

    run(test)


def test_connections_that_say_nothing_keep_nobody_out_who_asks() -> None:
    async def test(found: Site) -> None:
        begun = await asyncio.open_connection(*found.http.address)
        begun[1].write(b"GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert b"200 OK" in await asyncio.wait_for(begun[0].readline(), PATIENCE_S)
        silent = [await asyncio.open_connection(*found.http.address) for _ in range(3 * CONNECTIONS_MAX)]
        for number, (_, writer) in enumerate(silent):
            if number % 2:          # the rest of the form will never come
                writer.write(b"POST /act HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9999\r\n\r\nx")
        assert "LEADER" in await found.get("/")
        text = b""
        while text.count(b"data: ") < 4:                # it is told on, though it was there before all of them
            piece = await asyncio.wait_for(begun[0].read(1000), PATIENCE_S)
            assert piece
            text += piece
        assert await asyncio.wait_for(silent[0][0].read(1), PATIENCE_S) == b""
        for _, writer in (begun, *silent):
            writer.close()

    run(test)
