"""Builds the files that a host needs: an archive of wheels, sockpqd and its dependencies, named after its content.

    build_release.py --source REPOSITORY --into FOLDER

Prints one JSON object: `release` (1.0.0-3f2a90c1d4), `archive`, `python` and `platform` it was built for, and `built`
(false: the same source was built before). Needs the Python package index, the hosts do not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import tomllib
from pathlib import Path

# Folders beside the packages that pyproject.toml names:
FOLDERS = ("client", "deploy/manual", "deploy/systemd")
SUFFIXES = (".py", ".toml", ".typed", ".1", ".bash", ".zsh", ".fish", ".service", ".css", ".js")
FILES = ("pyproject.toml", "README.md")
PYTHON = f"{sys.version_info.major}.{sys.version_info.minor}"


def main() -> None:
    """Build the archive unless it exists, and print the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--source", type=Path, required=True)
    parser.add_argument("--into", type=Path, required=True)
    arguments = parser.parse_args()
    source, into = arguments.source.resolve(), arguments.into.resolve()
    if not (source / "pyproject.toml").exists():
        sys.exit(f"{source} is not the repository of sockpqd: it has no pyproject.toml")
    folder = into / digest(source_files(source), source)[:16]
    built = not folder.exists()
    if built:
        into.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=into) as unfinished:
            build(source, Path(unfinished, "wheels"))
            Path(unfinished).rename(folder)
            Path(unfinished).mkdir()        # for the end of the block
    (archive,) = folder.glob("*.tar")
    print(json.dumps({
        "release": archive.stem, "archive": str(archive), "python": PYTHON, "platform": sysconfig.get_platform(),
        "built": built,
    }))


def source_files(source: Path) -> list[Path]:
    """Everything that goes into the wheels."""
    files = [source / name for name in FILES]
    wheel = tomllib.loads((source / "pyproject.toml").read_text())["tool"]["hatch"]["build"]["targets"]["wheel"]
    for folder in (*wheel["packages"], *FOLDERS):
        files += [path for path in sorted((source / folder).rglob("*")) if path.suffix in SUFFIXES]
    return files


def digest(files: list[Path], base: Path) -> str:
    """A digest of names and contents, and of the Python the wheels are for."""
    total = hashlib.sha256(f"{PYTHON} {sysconfig.get_platform()}".encode())
    for file in files:
        total.update(f"{file.relative_to(base)}\0{hashlib.sha256(file.read_bytes()).hexdigest()}\n".encode())
    return total.hexdigest()


def build(source: Path, wheels: Path) -> None:
    """Build the wheels, with pip's own so that hosts need none, and an archive of them next to their folder."""
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--use-pep517", "--wheel-dir", str(wheels),
               str(source / "client"), str(source), "pip"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"the wheels could not be built: {done.stderr.strip()}")
    files = sorted(wheels.iterdir())
    (own,) = (file for file in files if file.name.startswith("sockpqd-"))
    release = f"{own.name.split('-')[1]}-{digest(files, wheels)[:10]}"
    with tarfile.open(wheels.parent / f"{release}.tar", "w") as archive:
        for file in files:
            archive.add(file, "pip.whl" if file.name.startswith("pip-") else file.name)     # run from the file


if __name__ == "__main__":
    main()
