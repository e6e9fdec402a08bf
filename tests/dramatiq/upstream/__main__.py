"""Runs Dramatiq's own tests, from its sources on the package index, with SockpqBroker and SockpqResults on three nodes.

    python -m tests.dramatiq.upstream [pytest's arguments]

Those that say something about any broker are run; skips.txt lists the others, with reasons. What the tests import
besides, the clients of RabbitMQ and Redis, is unpacked beside the sources in .tools.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.emptied_cluster import EmptiedCluster

VERSION = "2.2.1"
IMPORTED = "pika==1.4.4", "redis==8.1.0"
TESTS_MIN = 116         # fewer that pass would mean that tests were not found
NO_SOURCES = 9          # an exit code that pytest has not
HERE = Path(__file__).parent
ROOT = HERE.parents[2]
TOOLS = (ROOT / ".tools").resolve()
SOURCES = TOOLS / f"dramatiq-{VERSION}"
PIP = sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"


def fetch() -> None:
    """Unpack the sources, and install what the tests import, unless that was done."""
    if not SOURCES.exists():
        TOOLS.mkdir(exist_ok=True)
        subprocess.run(
            [*PIP, "download", "--no-deps", "--no-binary", ":all:", "--dest", TOOLS, f"dramatiq=={VERSION}"],
            check=True,
        )
        subprocess.run(["tar", "-xzf", TOOLS / f"dramatiq-{VERSION}.tar.gz", "-C", TOOLS], check=True)
    if not (SOURCES / "imported").exists():
        subprocess.run([*PIP, "install", "--target", SOURCES / "imported", *IMPORTED], check=True)


def run(*arguments: str) -> int:
    """Run them; returns 0 if all have passed, and says how many."""
    suite = SOURCES / "suite" / "tests"
    shutil.rmtree(suite.parent, ignore_errors=True)
    shutil.copytree(SOURCES / "tests", suite)
    shutil.copy(HERE / "fixtures.py", suite / "conftest.py")
    shutil.copy(HERE / "common.py", suite / "common.py")
    (suite / "__init__.py").touch()
    with EmptiedCluster() as cluster:
        environment = {
            **os.environ, "SKIPS": str(HERE / "skips.txt"), "SERVERS": cluster.address,
            "PYTHONPATH": str(SOURCES / "imported"),
        }
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-c", os.devnull, "--rootdir", suite.parent, "-p",
             "no:cacheprovider", "-p", "no:xdist", "-W", "ignore", "tests", *arguments],
            cwd=suite.parent, env=environment, stdout=subprocess.PIPE, text=True, check=False,
        )
    print(done.stdout)
    passed = re.search(r"(\d+) passed", done.stdout)
    enough = bool(arguments) or (passed is not None and int(passed[1]) >= TESTS_MIN)
    return done.returncode if enough else done.returncode or 1


if __name__ == "__main__":
    try:
        fetch()
    except subprocess.CalledProcessError:
        print("no sources of Dramatiq: the package index does not answer")
        sys.exit(NO_SOURCES)
    sys.exit(run(*sys.argv[1:]))
