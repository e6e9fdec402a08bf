"""Checks that clients generated from docs/openapi.json compile, and do the tutorial.

    python -m tests.http.generated

TypeScript by openapi-typescript needs npm, Go by ogen needs go; each is skipped with a line where that is missing.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from sockpq.testing import Server

from tests.http.door import Door

CLIENTS = Path(__file__).parent / "clients"
DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"
TYPESCRIPT = ("openapi-typescript@7", "openapi-fetch@0.14", "typescript@5", "@types/node@20")
OGEN = "github.com/ogen-go/ogen@v1.14.0"
GO_MOD = "module tutorial\n\ngo 1.24\n"


def run(folder: Path, *words: str) -> str:
    """Run a program there; returns what it prints. Raises CalledProcessError."""
    environment = {**os.environ, "GOFLAGS": "-mod=mod"}
    done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        print(done.stdout, done.stderr, file=sys.stderr)
        done.check_returncode()
    return done.stdout


def typescript(folder: Path, url: str) -> str:
    """Generate, compile and run the client in TypeScript."""
    (folder / "package.json").write_text('{"name": "tutorial", "private": true, "type": "module"}')
    shutil.copy(CLIENTS / "tutorial.ts", folder)
    run(folder, "npm", "install", "--silent", "--no-audit", "--no-fund", *TYPESCRIPT)
    run(folder, "npx", "openapi-typescript", str(DOCUMENT), "--default-non-nullable=false", "-o", "schema.d.ts")
    run(folder, "npx", "tsc", "--strict", "--module", "nodenext", "--target", "es2022", "--skipLibCheck", "tutorial.ts")
    return run(folder, "node", "tutorial.js", url)


def go(folder: Path, url: str) -> str:
    """Generate, compile and run the client in Go."""
    (folder / "go.mod").write_text(GO_MOD)
    for name in ("tutorial.go", "ogen.yml"):
        shutil.copy(CLIENTS / name, folder)
    run(folder, "go", "get", OGEN)
    run(folder, "go", "run", "github.com/ogen-go/ogen/cmd/ogen", "--config", "ogen.yml", "--target", "sockpqd",
        "--package", "sockpqd", "--clean", str(DOCUMENT))
    run(folder, "go", "mod", "tidy")
    return run(folder, "go", "run", ".", url)


LANGUAGES: dict[str, tuple[str, Callable[[Path, str], str]]] = {"TypeScript": ("npm", typescript), "Go": ("go", go)}


def main() -> None:
    """Run the tutorial with the client of each language whose program is installed."""
    with Server() as server, Door(server.address) as door:
        for language, (program, tutorial) in LANGUAGES.items():
            if shutil.which(program) is None:
                print(f"{language}: skipped, there is no {program}")
                continue
            with tempfile.TemporaryDirectory(prefix="sockpq-http-") as folder:
                assert tutorial(Path(folder), door.url) == "ok\n"
            print(f"{language}: the generated client compiles and does the tutorial")


if __name__ == "__main__":
    main()
