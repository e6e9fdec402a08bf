"""docs/SCALING.md: its commands do what the page says, in their order."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from devcluster.cluster import LocalCluster
from sockpqd.pqctl.output.exit_codes import DONE
from tests.packaging.blocks import blocks, commands
from tests.pqctl.running import run

PAGE = "docs/SCALING.md"
ADDED = "10.0.1.1:11361,10.0.1.2:11361,10.0.1.3:11361"      # the second cluster there
BACKUPS = "/var/backups/queues"
TRIED = "film. b"                                           # of the clusters of `sockpqd --dev`


def lines() -> Iterator[str]:
    """Yield the lines with pqctl of the page."""
    for block in blocks(PAGE):
        if block.language == "indented":
            yield from (line for line in commands(block) if line.startswith("pqctl "))


def test_the_commands_of_the_page(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with LocalCluster(1) as first, LocalCluster(1) as second:
        home, other = first.servers[0], second.servers[0]

        def say(line: str) -> str:
            line = line.partition(" #")[0].replace(ADDED, other).replace(TRIED, "film. video")
            words = shlex.split(line.replace(BACKUPS, str(tmp_path)))[1:]
            yes = ["--yes"] if "--it-is-gone" in words else []
            code, out, err = run(capsys, "--servers", home, *words, *yes)
            assert code == DONE, (line, err)
            return out

        page = list(lines())
        begin = page.index("pqctl map init main")
        for line in page[begin:]:
            if line == "pqctl map remove video":
                say("pqctl map move film. main")
            out = say(line)
            if line.endswith("--it-is-gone"):
                say(f"pqctl map add video {other}")
            if line == "pqctl map check":
                assert out.startswith("2 clusters with version ")
        assert len(list(tmp_path.iterdir())) == 2
        for line in page[:begin]:
            say(line)
