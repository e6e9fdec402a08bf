"""Distributions made as `make dist` makes them, and empty environments to install them into."""

from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[2]
PATIENCE_S = 280
INTEGRATIONS = sorted((ROOT / "integrations").iterdir())
SOURCES = ROOT / "client", *INTEGRATIONS, ROOT
PIP = sys.executable, "-m", "pip", "--disable-pip-version-check"
QUICKLY = "-q", "--no-compile"


def run(*command: str | Path, folder: Path, **environment: str) -> str:
    """Run a program without settings of this environment; return its output. Raises AssertionError when it fails."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("PYTHON", "SOCKP"))}
    done = subprocess.run(command, cwd=folder, env={**clean, **environment}, text=True, capture_output=True,
                          timeout=PATIENCE_S, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def build(root: Path, backend: Path, folder: Path) -> Path:
    """Make wheels and sources of what lies below `root`, as `make dist` does."""
    with ThreadPoolExecutor() as pool:
        list(pool.map(lambda source: run(
            sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, root / source.relative_to(ROOT),
            folder=folder, PYTHONPATH=str(backend),
        ), SOURCES))
    return folder


def empty_environment(folder: Path) -> Path:
    """Make an environment without any packages; return its folder of programs."""
    run(sys.executable, "-m", "venv", "--without-pip", folder / "env", folder=folder)
    return folder / "env" / "bin"


def install(bin_: Path, *arguments: str | Path, folder: Path) -> None:
    """Install packages into an environment."""
    run(*PIP, "--python", bin_ / "python", "install", *QUICKLY, "--pre", *arguments, folder=folder)
