"""No answer to a user names another user's things: all pages of the site, and all commands that only read."""

from __future__ import annotations

import asyncio
import re
from urllib.parse import urlencode

import pytest

from sockpqd.gateway import rights
from sockpqd.gateway.auth.authorizer import Guard, Someone
from sockpqd.gateway.commands.catalog import ROWS
from sockpqd.gateway.dashboard import execute
from sockpqd.gateway.dashboard.pages.parts.view import View
from sockpqd.gateway.dashboard.site import PAGES
from sockpqd.gateway.protocol.command import Kind
from tests.gateway.helpers.dashboard import HOST, Site, Users, run

HIDDEN = "concealed"             # in the name of everything that is not the user's
TAKEN, NONE = f"{HIDDEN}_key", "no_such_key"
EVA = (                         # who may do everything
    f"PUT {HIDDEN}_queue 0 4 IS {HIDDEN}_item KEY {TAKEN}\r\nbody",
    "PUT mail 0 4 KEY mail_key\r\nbody",
    f"GET {HIDDEN}_queue", f"PUT {HIDDEN}_queue 0 4 KEY {TAKEN}2\r\nbody",
    f"TOPIC BIND {HIDDEN}_topic mail", f"TOPIC BIND mail.topic {HIDDEN}_queue", "TOPIC BIND mail.topic mail",
    f"PULSE CREATE {HIDDEN}_pulse RATE 7", "PULSE CREATE mail.pulse RATE 5",
    f"QUEUE CREATE {HIDDEN}_rated RATE 3 PER 1", f"PUT {HIDDEN}_queue 0 0 GROUP {HIDDEN}_group",
)
ARGUMENTS = ("", " *", " mail*", f" {HIDDEN}*", " mail", f" {HIDDEN}_queue", f" {HIDDEN}_queue READY 5", " DATA")


class Tenants(Users):
    """A user who has rights on what is called mail, and for topics of that name."""

    known = {**Users.known, "max": rights.of_text("put:mail*,get:mail*,queue:mail*,queue:@mail*")}


async def furnish(found: Site) -> None:
    """Make everything that can have a name, and a worker of eva's."""
    for command in EVA:
        data = command if "\r\n" in command else f"{command}\r\n"
        answer = await execute(found.hub, "eva", f"{HOST}:1", data.encode())
        assert answer.startswith(b"200"), command
    answer = await execute(
        found.hub, "eva", f"{HOST}:1", f"SESSION\r\nWORKER {HIDDEN}_worker 4 3\r\n".encode())
    assert answer.count(b"200 OK") == 2
    assert HIDDEN in (await found.ask("GET", "/metrics"))[2]
    found.user = "max"


@pytest.mark.parametrize(
    "words", [{}, {"search": "h"}, {"search": f"{HIDDEN}_"}, {"name": "mail.topic"}, {"name": "mail"}])
def test_no_page_names_what_is_not_the_user_s(words: dict[str, str]) -> None:
    async def test(found: Site) -> None:
        await furnish(found)
        for path in (*PAGES, "/metrics"):
            _, _, content = await found.ask("GET", f"{path}?{urlencode(words)}")
            assert not re.search(rf"{HIDDEN}_\w", content), path        # without that it is what was searched for
        assert "mail.pulse" in (await found.ask("GET", "/metrics"))[2]
        assert ">mail</a>" in await found.get("/topics?name=mail.topic")

    run(test, Tenants())


@pytest.mark.parametrize("what", [{"key": TAKEN}, {"key": NONE}, {"seq": "1"}, {"seq": "999"}, {"key": f"{TAKEN}2"}])
def test_no_page_tells_whether_a_queue_of_others_has_such_a_job(what: dict[str, str]) -> None:
    async def test(found: Site) -> None:
        await furnish(found)
        await found.get(f"/job?{urlencode({'queue': f'{HIDDEN}_queue', **what})}", 403)
        for queue in (f"{HIDDEN}_queue", "no_such_queue"):
            await found.get(f"/queue?{urlencode({'name': queue})}", 403)

    run(test, Tenants())


def test_no_command_names_what_is_not_the_user_s() -> None:
    async def test(found: Site) -> None:
        await furnish(found)
        looked = 0
        for row in ROWS:
            if row.kind is not Kind.READ:
                continue
            for arguments in ARGUMENTS:
                line = f"{row.word.decode()}{arguments}\r\n"
                answer = await execute(found.hub, "max", f"{HOST}:1", line.encode())
                if answer.startswith(b"400 Bad Arguments"):
                    answer = re.sub(rb"'[^']*'", b"", answer)       # a word of the line itself
                assert HIDDEN.encode() not in answer, line
                looked += answer.startswith(b"200")
        assert looked > 10

    run(test, Tenants())


def test_no_event_names_a_worker_of_others() -> None:
    async def test(found: Site) -> None:
        await furnish(found)
        guard_of_eva, guard_of_max = [guard(found, user) for user in ("eva", "max")]
        session = b"SESSION\r\nWORKER mine 4 3\r\n"
        assert (await execute(found.hub, "max", f"{HOST}:1", session)).count(b"200 OK") == 2
        assert [guard_of_eva.may_hear("WORKER", name) for name in (f"{HIDDEN}_worker", "mine", "none")] == [True] * 3
        assert [guard_of_max.may_hear("WORKER", name) for name in (f"{HIDDEN}_worker", "mine", "none")] == [
            False, True, False]

    def guard(found: Site, user: str) -> Guard:
        return Guard(found.hub.access, found.cluster, Someone(f"{HOST}:1", user))

    run(test, Tenants())


def test_metrics_that_wait_are_not_shown_to_a_user_who_has_gone_meanwhile() -> None:
    async def test(found: Site) -> None:
        async with found.pages._one_at_a_time:
            asked = asyncio.create_task(found.ask("GET", "/metrics"))
            while not found.pages._one_at_a_time._waiters:      # type: ignore[attr-defined]
                await asyncio.sleep(0.001)
            found.hub.access.file_users = {}
        assert (await asked)[0] == 401

    run(test, Tenants())


def test_a_page_is_not_shown_to_a_user_who_goes_while_it_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made = PAGES["/queues"]

    async def test(found: Site) -> None:
        async def meanwhile(view: View) -> str:
            content = await made(view)
            found.hub.access.file_users = {}
            return content

        monkeypatch.setitem(PAGES, "/queues", meanwhile)
        assert (await found.ask("GET", "/queues"))[0] == 401

    run(test, Tenants())
