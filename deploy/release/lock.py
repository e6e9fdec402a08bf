"""Writes requirements.lock: what a release is built with, by version and hash. `make lock` takes the newest of each.

    python deploy/release/lock.py

Read by deploy/debian/build.py and by the bill of materials. For the Python that runs this.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LOCK = HERE / "requirements.lock"
# pyproject.toml of a distribution, and the extras of it that a release has.
DISTRIBUTIONS = (ROOT / "pyproject.toml", ("top",)), (ROOT / "client/pyproject.toml", ("worker",))


def requirements() -> list[str]:
    """Return what the distributions of a release need, ours left out, as requirements of pip."""
    found = set()
    for file, extras in DISTRIBUTIONS:
        project = tomllib.loads(file.read_text("utf-8"))["project"]
        found.update(project.get("dependencies", ()))
        for extra in extras:
            found.update(project["optional-dependencies"][extra])
    return sorted(found - {"sockpq"})


def main() -> None:
    """Resolve them, and write the file."""
    with tempfile.TemporaryDirectory() as folder:
        wanted = Path(folder, "requirements.in")
        wanted.write_text("".join(f"{line}\n" for line in requirements()))
        command = [
            sys.executable, "-m", "piptools", "compile", "--quiet", "--upgrade", "--generate-hashes", "--no-annotate",
            "--no-header", "--strip-extras", "--output-file", str(LOCK), str(wanted),
        ]
        if subprocess.run(command, cwd=folder, check=False).returncode != 0:
            sys.exit("the requirements could not be resolved")
    LOCK.write_text(f"# Written by deploy/release/lock.py (make lock).\n{LOCK.read_text()}")


if __name__ == "__main__":
    main()
