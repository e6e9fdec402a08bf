"""The benchmark of beanstalkd's clients measures each place, and its table has a row for each."""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from bench.beanstalkd import PLACES
from tests.bench.running import run


def test_each_place_has_rates(tmp_path: Path) -> None:
    document = tmp_path / "document.md"
    document.write_text("<!-- beanstalkd -->\n<!-- /beanstalkd -->\n")
    ended = run("bench.beanstalkd", "--seconds", "0.1", "--rounds", "1", "--into", document)
    assert ended.exit_code == 0, ended.stdout + ended.stderr
    rows = re.findall(r"^\| ([^|]+) \| ([\d,]+ \|.*)$", document.read_text(), re.MULTILINE)
    assert [place for place, _ in rows] == list(PLACES if shutil.which("beanstalkd") else PLACES[:-1])
    for _, figures in rows[:4]:
        assert all(int(figure.replace(",", "")) > 0 for figure in figures.strip(" |").split(" | "))
