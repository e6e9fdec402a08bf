"""The answers in docs/PROTOCOL.md are the server's."""

from __future__ import annotations

import asyncio
import contextlib
import io
import re
import threading
from pathlib import Path

import pytest

from sockpqd.gateway.commands.catalog import VERBS
from sockpqd.gateway.protocol import responses
from sockpqd.gateway.protocol.command import InTransaction
from tests.gateway.helpers.parsing import read_line
from tests.gateway.helpers.sockets import Gateway
from tests.gateway.helpers.transcript import Transcript

TEXT = (Path(__file__).parents[2] / "docs" / "PROTOCOL.md").read_text()
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
CONVERSATIONS = [block for kind, block in BLOCKS if kind == "" and block.startswith("> ")]
PROGRAMS = [block for kind, block in BLOCKS if kind == "python"]


@pytest.mark.parametrize("block", CONVERSATIONS, ids=lambda block: block.splitlines()[0])
def test_conversations_go_as_shown(block: str, tmp_path: Path) -> None:
    lines = block.splitlines()
    assert asyncio.run(Transcript(lines).run(tmp_path)) == lines


def index() -> list[tuple[list[str], str, str]]:
    """Return the rows of "Commands at a glance": verbs, and the columns of REQ and BEGIN."""
    text = TEXT.partition("\n## Commands at a glance\n")[2].partition("\n## ")[0]
    rows = []
    for line in text.splitlines():
        if not line.startswith("| [`"):
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        verbs: list[str] = []
        for text in re.findall(r"`([^`]+)`", cells[0]):
            name = text.removesuffix(" .. WAIT").removesuffix(" <sid>")
            family = verbs[-1].split()[0] if verbs else ""      # `QUEUE PAUSE`, `RESUME` is QUEUE RESUME
            verbs.append(name if family not in ("QUEUE", "CLUSTER") or " " in name else f"{family} {name}")
        rows.append((verbs, cells[4], cells[5]))
    return rows


def test_the_index_has_every_verb_of_the_catalog_and_no_other() -> None:
    # REQ stands before verbs, and what is never executed is for no client.
    executed = {row.word.decode() for row in VERBS.rows if row.counter}
    assert {verb for verbs, _, _ in index() for verb in verbs} - {"REQ"} == executed


def test_the_index_says_what_goes_with_req_and_in_a_transaction() -> None:
    numbered, queued = set(), set()
    for verbs, req, in_transaction in index():
        numbered.update(verbs if req == "yes" else ())
        queued.update(verbs if in_transaction.startswith("yes") else ())
    assert numbered == {row.word.decode() for row in VERBS.rows if row.numbered}
    assert queued == {row.word.decode() for row in VERBS.rows if row.in_transaction is InTransaction.QUEUED}


def test_every_verb_is_described() -> None:
    for row in VERBS.rows:
        assert re.search(rf"^    {row.word.decode()}\b", TEXT, re.MULTILINE) or row.word == b"SYNC", row.word


def synopsis() -> list[str]:
    """Return the forms of commands in the document, without their answers; a line that begins with an option continues
    one.
    """
    forms: list[str] = []
    last = 0
    for at, line in enumerate(TEXT.splitlines()):
        if re.match(r"    [A-Z][A-Z|]*( |$)", line):
            forms.append(re.split(r" +->| +and the data", line)[0])
            last = at
        elif forms and at == last + 1 and re.match(r"     +\[", line):
            forms[-1] += line
    return list(dict.fromkeys(" ".join(form.split()) for form in forms))


def test_help_shows_the_synopsis_of_the_document() -> None:
    assert list(read_line("HELP").arguments) == synopsis()


def test_help_knows_every_verb_of_the_catalog_and_no_other() -> None:
    verbs = {row.word.decode() for row in VERBS.rows if row.counter}
    for verb in verbs | {"REQ"}:
        shown = read_line(f"HELP {verb.lower()}").arguments
        assert shown, verb
        assert all(set(verb.split()) <= set(re.split(r"[ |]", form)) for form in shown), (verb, shown)
    for form in synopsis():
        words = form.split()
        assert verbs & {words[0], *words[0].split("|"), " ".join(words[:2])} or words[0] == "REQ", form


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
        assert started.wait(60)
        with contextlib.redirect_stdout(output):
            exec(PROGRAMS[0].replace("11361", str(port)), {})
    finally:
        finished.set()
        server.join()
    assert output.getvalue() == "b'hello'\n"
