"""Every conversation in transcripts/ goes exactly as written there."""

import asyncio
from pathlib import Path

import pytest

from sockpqd.gateway.server import pipeline
from tests.gateway.helpers.transcript import Transcript

TRANSCRIPTS = sorted((Path(__file__).parent / "transcripts").glob("*.txt"))


@pytest.mark.parametrize("path", TRANSCRIPTS, ids=lambda path: path.stem)
def test_transcript(
    path: Path, tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(pipeline, "SLOW_S", -1.0)       # all commands are noted as slow ones, whatever their form
    transcript = Transcript(path.read_text("ascii").splitlines())
    lines = asyncio.run(transcript.run(tmp_path))
    if request.config.getoption("--rewrite", default=False):
        path.write_text("\n".join(lines) + "\n", "ascii")
    else:
        assert lines == transcript.lines
