"""`pytest tests/gateway --rewrite` writes the server's real answers into the transcripts: review the diff."""

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--rewrite", action="store_true", help="rewrite the transcripts with the real answers")
