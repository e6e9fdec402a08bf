"""`pytest tests/gateway --rewrite` writes the server's real answers into the transcripts: review the diff."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="rewrite the transcripts with the real answers")


@pytest.fixture(autouse=True)
def _no_rests(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the slices of a search follow each other at once: a gateway in memory settles within a few turns."""
    monkeypatch.setattr("sockpqd.gateway.commands.find.FIND_REST_S", 0)
    monkeypatch.setattr("sockpqd.gateway.commands.find.FIND_REST_SLICES", 0)
