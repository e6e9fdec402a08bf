"""Administrative commands leave a line in the audit log; secrets do not get there, and other commands leave none."""

from __future__ import annotations

import asyncio
import gc
import logging
import re
from collections.abc import Coroutine
from pathlib import Path
from typing import Any, cast

import pytest

from sockpqd.core import ConfigureQueue, Put
from sockpqd.gateway.auth import permissions as may
from sockpqd.gateway.commands.catalog import ROWS
from sockpqd.gateway.commands.context.audited import _Audited
from sockpqd.gateway.protocol.command import Kind
from tests.gateway.helpers.sockets import Gateway

KEY = "00112233445566778899aabbccddeeff"
SCRIPT = (
    "PUT q 0 1\r\nxGET q\r\nQUEUE STAT q\r\nUSER LIST\r\nCONFIG AUTOCREATE OFF\r\nCLUSTER OFFLINE\r\n"
    f"CLUSTER ONLINE\r\nSESSION END 9\r\nUSER SET eva put:mail* {KEY}\r\nUSER DELETE nobody\r\n"
    "SCHED CONFIG CAP 20\r\nWORKER SET nobody STATE PAUSE\r\nSNAPSHOT\r\nCLONE 4\r\nabcd"
    "SESSION\r\nREQ 1 CONFIG AUTOCREATE ON\r\nCLUSTER TRANSFER n1\r\nSHUTDOWN\r\n"
).encode()


def test_administrative_commands_are_noted(caplog: pytest.LogCaptureFixture, tmp_path: Path) -> None:
    async def talk() -> bytes:
        gateway = Gateway()
        await gateway.start()
        gateway.hub._export_dir = tmp_path
        client = await gateway.connect()
        client.send(SCRIPT)
        try:
            return await client.rest()
        finally:
            await gateway.close()

    with caplog.at_level(logging.INFO, "sockpqd.audit"):
        answers = asyncio.run(asyncio.wait_for(talk(), 30))
    lines = [record.getMessage() for record in caplog.records if record.name == "sockpqd.audit"]
    noted = [re.fullmatch(r"user=- address=127\.0\.0\.1:\d+ action=(.*) object='(.*)' outcome='(.*)'", line)
             for line in lines]
    assert all(noted), lines
    outcomes = [(match[1], match[3]) for match in noted if match]
    assert outcomes == [
        ("CONFIG", "200 OK"), ("CLUSTER OFFLINE", "200 OK Switched to Offline Mode"),
        ("CLUSTER ONLINE", "200 OK Switched to Online Mode"), ("SESSION END", "404 Session Not Found"),
        ("USER SET", "200 OK"), ("USER DELETE", "404 User Not Found"), ("SCHED CONFIG", "200 OK"),
        ("WORKER SET", "404 Worker Not Found"), ("SNAPSHOT", "sent"), ("CLONE", "begun"),
        ("CLONE", "500 Invalid Snapshot"), ("CONFIG", "200 OK"), ("CLUSTER TRANSFER", "200 OK 1 10.0.0.1 11361"),
        ("SHUTDOWN", "221 Shutting Down"),
    ], (outcomes, answers)
    assert "autocreate=False" in lines[0]
    assert "eva put:mail*" in lines[4]
    assert KEY[:16] not in "".join(lines)


def test_a_refusal_is_noted_and_so_is_what_nobody_waits_for(caplog: pytest.LogCaptureFixture) -> None:
    async def talk() -> None:
        gateway = Gateway()
        await gateway.start()
        try:
            gateway.cluster.follow("n2")
            client = await gateway.connect()
            client.send(b"CONFIG AUTOCREATE OFF\r\n")
            client.writer.write_eof()
            assert await client.rest() == b"500 Offline Mode\r\n"
            gateway.cluster.lead()
            gateway.cluster.automatic = False           # nothing is committed any more
            client = await gateway.connect()
            client.send(b"CLUSTER OFFLINE\r\n")
            await gateway.until(lambda: gateway.cluster.in_flight)
            client.reset()
            await gateway.until(lambda: len(caplog.records) > 1)
        finally:
            await gateway.close()

    with caplog.at_level(logging.INFO, "sockpqd.audit"):
        asyncio.run(asyncio.wait_for(talk(), 30))
    first, second = [record.getMessage() for record in caplog.records if record.name == "sockpqd.audit"]
    assert "action=CONFIG" in first
    assert "outcome='REFUSED'" in first
    assert "action=CLUSTER OFFLINE" in second
    assert "the client has gone; perhaps it was executed" in second


BEHIND = (
    b"SESSION TTL 60\r\nQUEUE CREATE q WEIGHT 2\r\nPUT q 0 1\r\nxQUEUE PURGE q READY\r\nQUEUE DELETE q FORCE\r\n"
    b"REQ 1 QUEUE CREATE q WEIGHT 3\r\nTOTAL q\r\nSNAPSHOT\r\n"
)


def test_while_many_lines_wait_no_command_that_leaves_one_is_begun(
    caplog: pytest.LogCaptureFixture, tmp_path: Path,
) -> None:
    """A flood of them would lose lines. The answers are the same, in their order."""
    async def talk(*, behind: bool) -> bytes:
        gateway = Gateway()
        await gateway.start()
        gateway.hub._export_dir = tmp_path
        waiting = behind
        gateway.hub.audit_behind = lambda: waiting
        client, other = await gateway.connect(), await gateway.connect()
        client.send(BEHIND)
        client.writer.write_eof()
        if behind:
            other.send(b"PUT free 0 1\r\nxQUEUE CREATE kept WEIGHT 2\r\n")
            await gateway.until(lambda: gateway.cluster.operations(Put))
            assert await other.line() == b"200 OK\r\n"
            assert not gateway.cluster.operations(ConfigureQueue)
            waiting = False
            assert await other.line() == b"200 OK\r\n"
        try:
            return await client.rest()
        finally:
            await gateway.close()

    with caplog.at_level(logging.INFO, "sockpqd.audit"):
        free = asyncio.run(asyncio.wait_for(talk(behind=False), 60))
        lines = len(caplog.records)
        late = asyncio.run(asyncio.wait_for(talk(behind=True), 60))
    end = b" 1 0 0 0\r\n"
    (before, _, snapshot), (before_late, _, snapshot_late) = free.partition(end), late.partition(end)
    assert re.sub(rb"SESSION \S+", b"", before) == re.sub(rb"SESSION \S+", b"", before_late)
    assert b"PQRAFT" in snapshot
    assert b"PQRAFT" in snapshot_late
    assert len(caplog.records) == 2 * lines + 1


def test_what_changes_queues_pulses_and_topics_is_noted_without_bodies(caplog: pytest.LogCaptureFixture) -> None:
    async def talk() -> bytes:
        gateway = Gateway()
        await gateway.start()
        try:
            client = await gateway.connect()
            client.send(b"QUEUE CREATE a LIMIT 2\r\nPUT a 0 1\r\nxQUEUE PURGE a ALL\r\nQUEUE DELETE a FORCE\r\n"
                        b"PULSE CREATE p\r\nPULSE SET p 6\r\nsecretTOPIC BIND t q\r\nKICK q 1\r\nQUIT\r\n")
            return await client.rest()
        finally:
            await gateway.close()

    with caplog.at_level(logging.INFO, "sockpqd.audit"):
        answers = asyncio.run(asyncio.wait_for(talk(), 30))
    lines = [record.getMessage() for record in caplog.records if record.name == "sockpqd.audit"]
    noted = [re.search(r"action=(.*) object=.* outcome='(.*)'", line) for line in lines]
    assert [match.groups() for match in noted if match] == [
        ("QUEUE CREATE", "200 OK"), ("QUEUE PURGE", "200 OK 1"), ("QUEUE DELETE", "200 OK"), ("PULSE CREATE", "200 OK"),
        ("PULSE SET", "200 OK"), ("TOPIC BIND", "200 OK"), ("KICK", "200 OK 0"),
    ], (lines, answers)
    assert "object='queue=a then=DEFAULT limit=2 spread=False create=True'" in lines[0]
    assert "secret" not in "".join(lines)


def test_whatever_administers_and_is_more_than_a_look_is_audited() -> None:
    administers = (may.admin, may.queue, may.settings, may.pulse, may.topic, may.binding)
    run = {row.word: row.run for row in ROWS if row.right in administers and row.kind is not Kind.READ}
    assert len(run) > 25
    assert [word for word, one in run.items() if not hasattr(one, "__wrapped__")] == []


def test_a_command_whose_client_goes_before_its_first_step_leaves_no_warning(recwarn: pytest.WarningsRecorder) -> None:
    class Gone:
        """A client that ends what it should run at once."""

        def run(self, work: Coroutine[None, None, None]) -> None:
            work.close()

    _Audited(cast(Any, Gone()), cast(Any, None)).run(asyncio.sleep(0))
    gc.collect()
    assert [str(warning.message) for warning in recwarn] == []
