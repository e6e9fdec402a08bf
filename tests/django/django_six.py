"""The same tests with Django 6, which needs Python 3.12: `python -m tests.django.django_six`.

The interpreter is the one in the variable PYTHON312, or a python3.12 or newer in PATH. Into an environment in .tools it
installs Django, pytest and what the client library's workers need; our packages are read from the sources.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
PLACE = ROOT / ".tools" / "django-6"
DJANGO = "django==6.0.10"
NEEDS = (
    DJANGO, "psycopg[binary]>=3.2", "pytest>=8.2", "click>=8.1", "cronsim>=2.7", "prometheus-client>=0.21",
    "rich>=13.7",
)
NAMES = ("python3.14", "python3.13", "python3.12")
SOURCES = ("client/src", "integrations/outbox/src", "integrations/django/src")
# Of the files here those that start no worker: the others differ in nothing that depends on Django's version.
TESTS = ("test_backend.py", "test_memory.py", "test_once.py", "test_outbox.py", "test_admin.py")
PROBE = "import sys, ensurepip, venv; raise SystemExit(sys.version_info < (3, 12))"


def interpreter() -> str | None:
    """Return the Python for Django 6; None if there is none that can make environments."""
    for name in filter(None, (os.environ.get("PYTHON312"), *NAMES)):
        found = shutil.which(name)
        if found and subprocess.run([found, "-c", PROBE], capture_output=True, check=False).returncode == 0:
            return found
    return None


def made() -> Path | None:
    """Return the interpreter of the environment; None if it was not made."""
    return PLACE / "bin" / "python" if (PLACE / DJANGO).exists() else None


def make(python: str) -> Path:
    """Make the environment, unless it is there, and return its interpreter."""
    if made() is None:
        shutil.rmtree(PLACE, ignore_errors=True)
        subprocess.run([python, "-m", "venv", PLACE], check=True)
        pip = [PLACE / "bin" / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, *NEEDS], check=True)
        (PLACE / DJANGO).touch()
    return PLACE / "bin" / "python"


def run(python: Path, *tests: str) -> subprocess.CompletedProcess[str]:
    """Run tests of this folder with that Python."""
    line = [
        python, "-m", "pytest", "-c", os.devnull, "--rootdir", ROOT, "--noconftest", "-p", "tests.django.conftest",
        "-p", "no:cacheprovider", "-q", "-W", "error", *(Path(__file__).parent / test for test in tests),
    ]
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])      # which has sockpqd
    environment = {
        **os.environ, "PATH": path, "PYTHONPATH": os.pathsep.join([str(ROOT), *(str(ROOT / one) for one in SOURCES)]),
    }
    return subprocess.run(line, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def main() -> int:
    """Make the environment and run the tests; returns the exit code."""
    found = interpreter()
    python = made() or (make(found) if found else None)
    if python is None:
        print("no Python 3.12 or newer (PYTHON312=): the tests with Django 6 are skipped")
        return 0
    done = run(python, *TESTS)
    print(done.stdout, done.stderr, sep="\n")
    return done.returncode


if __name__ == "__main__":
    sys.exit(main())
