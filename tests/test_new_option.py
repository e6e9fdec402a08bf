"""A new option of a verb is written in at most twelve files, everything else follows: done here, in a copy of the tree.

The option is `LATER <id> QUIET`, which sends no event. Its edits are a real option's (docs/ARCHITECTURE.md, How to
add a command): the files made from others are made, and the tests that watch over operations, formats, grammar,
documents and clients run in the copy, with the reference model.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FILES_MAX = 12
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", ".tools", ".hypothesis", ".*_cache", "__pycache__", "dist", "build", "sockpqd-dev*", "candidate",
)
MADE = ("client/src/sockpq/_async/", "client/src/sockpq/_sync/")        # by client/tools/faces.py

# What is replaced in each file; each of the words stands there once.
EDITS: dict[str, dict[str, str]] = {
    "core/ops/jobs.py": {
        "    dropped: bool = False\n\n    @property":
            "    dropped: bool = False\n    quiet: bool = False\n\n    @property",
    },
    "core/levels.py": {
        "a copy in another region\n": "a copy in another region\n    3       LATER .. QUIET\n",
        "FEATURE_LEVEL = 2 ": "FEATURE_LEVEL = 3 ",
        "[tuple[str, str], int] = {}": '[tuple[str, str], int] = {("End", "quiet"): 3}',
    },
    "core/rules/complete.py": {
        '    if not expired:\n        state.events.tell("LATER"':
            '    if not expired and not options.quiet:\n        state.events.tell("LATER"',
    },
    "gateway/protocol/grammar/jobs/ends.py": {
        '    b"YIELD": Option("yielded"),\n': '    b"YIELD": Option("yielded"),\n    b"QUIET": Option("quiet"),\n',
    },
    "client/src/sockpq/_protocol/commands/jobs.py": {
        "    yielded: bool = False,\n": "    yielded: bool = False,\n    quiet: bool = False,\n",
        'arguments.switch(yielded, "yielded") else "")':
            'arguments.switch(yielded, "yielded") else "")\n'
            '    words += " QUIET" if arguments.switch(quiet, "quiet") else ""',
    },
    "docs/PROTOCOL.md": {
        "all is well: the attempt is not counted |\n":
            "all is well: the attempt is not counted |\n| `QUIET` | no event `LATER` is sent |\n",
        "LATER options: AT, DELAY, ERROR, FIRST, PRI, RAN": "LATER options: AT, DELAY, ERROR, FIRST, PRI, QUIET, RAN",
    },
    "CHANGELOG.md": {"## [Unreleased]\n": "## [Unreleased]\n\n- `LATER .. QUIET` sends no event.\n"},
    "tests/samples.py": {
        '        "dropped": (False, False, True),\n':
            '        "dropped": (False, False, True),\n        "quiet": (False, True),\n',
        '    How.LATER: ("when",': '    How.LATER: ("quiet", "when",',
    },
    "tests/core/model/end.py": {
        '        self.tell("LATER", ': '        later.quiet or self.tell("LATER", ',
    },
    "tests/gateway/protocol/test_grammar_extensions.py": {
        '    ("LATER 5 AT 0",': '    ("LATER 5 QUIET", End(5, How.LATER, quiet=True)), ("LATER 5 AT 0",',
    },
    "tests/gateway/transcripts/bad_commands.txt": {"FIRST, YIELD, REASON": "FIRST, YIELD, QUIET, REASON"},
    "tests/client/test_options.py": {
        "        (jobs.later(5, first=True),":
            '        (jobs.later(5, quiet=True), b"LATER 5 QUIET\\r\\n"),\n        (jobs.later(5, first=True),',
    },
}
# What notices an option that is not everywhere.
WATCHING = (
    "tests/core/ops", "tests/core/handlers/test_field_levels.py", "tests/core/handlers/test_levels.py",
    "tests/core/handlers/test_table.py", "tests/core/rules/test_events.py", "tests/upgrade/test_formats.py",
    "tests/gateway/protocol/test_grammar_extensions.py", "tests/gateway/test_documentation.py",
    "tests/gateway/test_transcripts.py", "tests/gateway/commands/test_catalog.py", "tests/client/test_options.py",
    "tests/client/test_faces.py",
)

# As the laws of core/laws, for eight jobs that run; nothing is made smaller when machine and model differ.
LAW = """
from hypothesis import Phase, given, settings, strategies
from sockpqd.core import Get, GetWith, How, Machine, Put
from tests.core.helpers.agreement import assert_equal_to_model
from tests.core.helpers.logs import LogEntry
from tests.core.model.model import Model
from tests.samples import ends

@settings(max_examples=100, phases=[Phase.generate], derandomize=True, database=None, deadline=None)
@given(strategies.lists(ends(How.LATER), min_size=1, max_size=4))
def law(found):
    begin = [LogEntry(0, 0, [Put("a", 0, b"1")] * 8 + [GetWith(Get(None), 8)]), LogEntry(1, 1, found)]
    assert_equal_to_model(begin, Machine(), Model())

law()
"""


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """The tree, in which files may be changed."""
    return Path(shutil.copytree(ROOT, tmp_path / "tree", symlinks=True, ignore=LEFT_OUT))


def run(copy: Path, *arguments: str) -> str:
    """The output of a program of the copy, which must succeed."""
    paths = os.pathsep.join(map(str, (copy, copy / "client" / "src", copy / "integrations" / "kombu" / "src")))
    environment = {**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *arguments], cwd=copy, env=environment,
        capture_output=True, text=True, timeout=300, check=False,
    )
    assert done.returncode == 0, done.stdout[-5000:] + done.stderr[-2000:]
    return done.stdout


def changed(copy: Path) -> set[str]:
    """The files of the copy that differ from the tree's, or are not there."""
    names = [path.relative_to(copy) for path in copy.rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    return {
        name.as_posix() for name in names
        if not (ROOT / name).is_file() or (ROOT / name).read_bytes() != (copy / name).read_bytes()
    }


def test_an_option_of_an_old_verb_is_written_in_at_most_twelve_files(copy: Path) -> None:
    for name, edits in EDITS.items():
        text = (copy / name).read_text("utf-8")
        for old, new in edits.items():
            assert text.count(old) == 1, f"{name} has changed: where does an option stand there now? {old!r}"
            text = text.replace(old, new)
        (copy / name).write_text(text, "utf-8")
    run(copy, "client/tools/faces.py")
    touched = changed(copy)
    assert {name for name in touched if not name.startswith(MADE)} == set(EDITS)
    assert len(EDITS) <= FILES_MAX
    run(copy, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--fast", *WATCHING)
    run(copy, "-c", LAW)
    for written in ("sync", "async"):
        assert "quiet: bool = False" in (copy / f"client/src/sockpq/_{written}/client.py").read_text("utf-8")
