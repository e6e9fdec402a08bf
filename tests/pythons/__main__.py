"""`make test-pythons VERSIONS='3.11 3.13 3.14'`: the quick tests with each version, and what all versions agree on.

The version of this environment is used as it is; others are Debian's, in .tools/pythons (debian.py). Then the same
simulated clusters run with each, and their digests must be equal; and a cluster of real nodes has one node of each.
The exit code is 0 when all is well. `--agree` leaves out the quick tests.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from tests.lanes import FAST, FAST_JOBS
from tests.pythons import debian, mixed

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / ".tools" / "pythons"
PROJECT = ROOT / "pyproject.toml"
SOURCES = ("-e", "./client", "-e", "./integrations/kombu", "-e", ".[dev]")
THIS = f"{sys.version_info.major}.{sys.version_info.minor}"


def python(version: str) -> Path:
    """Return the program of an environment in which everything is installed with this version."""
    if version == THIS:
        return Path(sys.executable)
    environment = FOLDER / version
    program = environment / "bin" / "python"
    if not debian.is_done(environment) or (environment / debian.DONE).stat().st_mtime < PROJECT.stat().st_mtime:
        base = debian.unpacked(version, FOLDER)
        print(f"installing for Python {version}: some minutes ..", flush=True)
        subprocess.run([base, "-m", "venv", "--clear", "--without-pip", environment], check=True)
        subprocess.run(
            [program, debian.pip(version, FOLDER), "install", "-q", "--disable-pip-version-check", *SOURCES],
            cwd=ROOT, check=True)
        debian.note_done(environment)
    return program


def quick_tests(version: str, program: Path) -> bool:
    """Run the tests of `make test-fast`; returns whether all passed."""
    print(f"the quick tests with Python {version}:", flush=True)
    done = subprocess.run(
        [program, "-m", "pytest", "-q", "-m", FAST, "--fast", "-n", FAST_JOBS,
         "-o", f"cache_dir=.pytest_cache/{version}", "tests"],
        cwd=ROOT, check=False, env=mixed.environment())
    return done.returncode == 0


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 when all is well."""
    parser = argparse.ArgumentParser(prog="python -m tests.pythons", description=__doc__)
    parser.add_argument("versions", nargs="*", default=list(debian.SUITES))
    parser.add_argument("--agree", action="store_true", help="without the quick tests")
    asked = parser.parse_args(arguments)
    pythons = {version: python(version) for version in asked.versions}
    failed = [version for version, program in pythons.items() if not asked.agree and not quick_tests(version, program)]
    differing = mixed.differing({version: mixed.digests(program) for version, program in pythons.items()})
    print(*differing, sep="\n", end="\n" if differing else "")
    print(f"{mixed.SEEDS} simulated clusters with {', '.join(pythons)}: {len(differing)} digests differ", flush=True)
    entries = mixed.one_cluster(pythons)
    print(f"a cluster of nodes with {', '.join(pythons)}: equal after {entries} entries")
    print(*(f"tests fail with Python {version}" for version in failed), sep="\n", end="\n" if failed else "")
    return 1 if failed or differing else 0


if __name__ == "__main__":
    sys.exit(main())
