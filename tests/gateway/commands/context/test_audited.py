"""Administrative commands leave a line in the audit log; secrets do not get there, and other commands leave none."""

from __future__ import annotations

import asyncio
import logging
import re

import pytest

from tests.gateway.helpers.sockets import Gateway

KEY = "00112233445566778899aabbccddeeff"
SCRIPT = (
    "PUT q 0 1\r\nxGET q\r\nQUEUE CREATE a\r\nUSER LIST\r\nCONFIG AUTOCREATE OFF\r\nCLUSTER OFFLINE\r\n"
    f"CLUSTER ONLINE\r\nSESSION END 9\r\nUSER SET eva put:mail* {KEY}\r\nUSER DELETE nobody\r\n"
    "CLUSTER TRANSFER n1\r\nSHUTDOWN\r\n"
).encode()


def test_administrative_commands_are_noted(caplog: pytest.LogCaptureFixture) -> None:
    async def talk() -> bytes:
        gateway = Gateway()
        await gateway.start()
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
    assert [match[1] for match in noted if match] == [
        "CONFIG", "CLUSTER OFFLINE", "CLUSTER ONLINE", "SESSION END", "USER SET", "USER DELETE",
        "CLUSTER TRANSFER", "SHUTDOWN",
    ], (lines, answers)
    outcomes = [match[3] for match in noted if match]
    assert outcomes[0] == "200 OK"
    assert outcomes[3] == "404 Session Not Found"
    assert [match[2] for match in noted if match][:1] == ["autocreate=False"]
    assert "eva put:mail*" in lines[4]
    assert KEY[:16] not in "".join(lines)
