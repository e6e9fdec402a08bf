"""The examples of client/README.md do what they say."""

from __future__ import annotations

import doctest
from pathlib import Path

from sockpq.testing import Server

README = Path(__file__).parents[2] / "client" / "README.md"
SERVERS = "127.0.0.1:11361,127.0.0.1:11371,127.0.0.1:11381"


def test_the_examples_of_the_readme_run() -> None:
    with Server() as server:
        text = README.read_text("utf-8").replace(SERVERS, server.address)
        examples = doctest.DocTestParser().get_doctest(text, {}, "README.md", str(README), 0)
        assert len(examples.examples) > 15
        told: list[str] = []
        result = doctest.DocTestRunner().run(examples, out=told.append)
    assert result.failed == 0, "".join(told)
