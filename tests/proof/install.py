"""Installs the wheels of a folder into an environment of their own, with the other packages that the proof needs.

    python -m tests.proof.install dist .proof

makes .proof/venv, .proof/here (a folder with tests/ and devcluster/ of this repository and nothing else,
so that a program that begins there imports what was installed) and .proof/what.json.
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
import venv
from pathlib import Path

import msgspec

from tests.proof.what import What

ROOT = Path(__file__).parents[2]
LINKS = "tests", "devcluster"
BESIDE = "celery>=5.5", "cryptography>=42", "toxiproxy-python==0.1.1"   # what the clients and tests/chaos import
PIP = "-m", "pip", "install", "--quiet", "--disable-pip-version-check"


def main(dist: Path, folder: Path) -> None:
    """Install the wheels, unless the same ones are installed. Raises SystemExit when there are none."""
    wheels = sorted(dist.glob("*.whl"))
    if not wheels:
        raise SystemExit(f"{dist}: there is no wheel; make dist builds them")
    what = What(_commit(), {wheel.name: hashlib.sha256(wheel.read_bytes()).hexdigest() for wheel in wheels})
    known, python = folder / "what.json", folder / "venv" / "bin" / "python"
    if not known.exists() or msgspec.json.decode(known.read_bytes(), type=What).wheels != what.wheels:
        print(f"installing {', '.join(what.wheels)} in {python.parents[1]} ..", flush=True)
        venv.create(folder / "venv", clear=True, with_pip=True)
        subprocess.run([python, *PIP, *map(str, wheels), *BESIDE], check=True)
    here = folder / "here"
    here.mkdir(exist_ok=True)
    for name in LINKS:
        (here / name).unlink(missing_ok=True)
        (here / name).symlink_to(ROOT / name)
    known.write_bytes(msgspec.json.encode(what))


def _commit() -> str:
    """The commit of the sources, with a word when they differ from it."""
    def git(*words: str) -> str:
        return subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ".", ":!proof")     # where pieces are noted
    return git("rev-parse", "HEAD") + (", changed" if changed else "")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
