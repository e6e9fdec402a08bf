"""What docs/PROTOCOL.md shows is what the server says."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import threading
from pathlib import Path

import pytest

from gateway.protocol import responses
from gateway.protocol.grammar import CLUSTER, VERBS
from tests.gateway.test_server import Gateway
from tests.gateway.transcript import Transcript

TEXT = (Path(__file__).parents[2] / "docs" / "PROTOCOL.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
CONVERSATIONS = [block for kind, block in BLOCKS if kind == "" and block.startswith("> ")]
PROGRAMS = [block for kind, block in BLOCKS if kind == "python"]


@pytest.mark.parametrize("block", CONVERSATIONS, ids=lambda block: block.splitlines()[0])
def test_conversations_go_as_shown(block: str, tmp_path: Path) -> None:
    lines = block.splitlines()
    assert asyncio.run(Transcript(lines).run(tmp_path)) == lines


def test_every_verb_is_described() -> None:
    for verb in VERBS:
        assert re.search(rf"\b{verb.decode()}\b", TEXT), verb
    for word in CLUSTER:
        assert re.search(rf"^    CLUSTER {word.decode()}\b", TEXT, re.MULTILINE), word


def test_every_answer_is_described() -> None:
    lines = [value for value in vars(responses).values() if isinstance(value, bytes) and value.endswith(b"\r\n")]
    assert len(lines) > 15
    for line in lines:
        assert line.decode().strip() in TEXT, line


def test_the_program_works() -> None:
    started, finished = threading.Event(), threading.Event()
    port = 0

    async def serve() -> None:
        nonlocal port
        gateway = Gateway()
        port = (await gateway.start())[1]
        started.set()
        await gateway.until(finished.is_set)
        await gateway.close()

    server = threading.Thread(target=lambda: asyncio.run(serve()))
    server.start()
    output = io.StringIO()
    try:
        assert started.wait(20)
        with contextlib.redirect_stdout(output):
            exec(PROGRAMS[0].replace("11361", str(port)), {})
    finally:
        finished.set()
        server.join()
    assert output.getvalue() == "b'hello'\n"
