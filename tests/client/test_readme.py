"""The examples of client/README.md work as described."""

from __future__ import annotations

import doctest
import os
import re
import subprocess
import sys
from pathlib import Path

from sockpq.testing import Server

README = Path(__file__).parents[2] / "client" / "README.md"
SERVERS = "127.0.0.1:11361,127.0.0.1:11461,127.0.0.1:11561"


def test_the_examples_of_the_readme_run() -> None:
    with Server() as server:
        text = README.read_text("utf-8").replace(SERVERS, server.address)
        examples = doctest.DocTestParser().get_doctest(text, {}, "README.md", str(README), 0)
        assert len(examples.examples) > 15
        told: list[str] = []
        result = doctest.DocTestRunner().run(examples, out=told.append)
    assert result.failed == 0, "".join(told)


def test_the_first_program_runs_as_it_stands() -> None:
    first = re.search(r"```python\n(.*?)```", README.read_text("utf-8"), re.DOTALL)
    assert first
    with Server() as server, subprocess.Popen(
        [sys.executable, "-u", "-c", first[1]], env={**os.environ, "SOCKPQ_SERVERS": server.address},
        stdout=subprocess.PIPE, text=True,
    ) as program:
        assert program.stdout
        lines = [program.stdout.readline() for _ in range(2)]
        program.terminate()         # its loop has no end
    assert lines == ["sending to bob\n", "sending to ann\n"]
