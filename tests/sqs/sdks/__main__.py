"""Runs a program for each of eight SDKs against sockpq-sqs with users, before three nodes.

    python -m tests.sqs.sdks BUILD [python aiobotocore node go java rust php ruby]

Each creates queues, sends with attributes, receives, changes visibility, deletes, and does the same in batches and in
order in a FIFO queue. It finds the service by AWS_ENDPOINT_URL_SQS alone, which the two of Debian, for PHP and Ruby,
read themselves: these SDKs are older than the variable, and speak the Query protocol. BUILD is a folder for what is
fetched and built: from PyPI, npm, the proxy of Go's modules, Maven Central and crates.io; Debian's packages are
php-cli php-curl php-xml php-async-aws-sqs, and ruby-aws-sdk. The exit code is 1 if a program fails or cannot run.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from devcluster.cluster import LocalCluster
from tests.sqs.service import SECRET, USER, Service

HERE = Path(__file__).parent
BUILD_S, RUN_S = 1800, 300
Command = list[str | Path]


def main() -> int:
    """Build and run the programs; returns the exit code."""
    parser = argparse.ArgumentParser(prog="tests.sqs.sdks", description="Programs for eight SDKs.")
    parser.add_argument("build", type=Path)
    parser.add_argument("languages", nargs="*", default=list(PROGRAMS), metavar="LANGUAGE", help=", ".join(PROGRAMS))
    options = parser.parse_args()
    if unknown := set(options.languages) - set(PROGRAMS):
        parser.error(f"there is no program for {', '.join(sorted(unknown))}")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="sqs-") as name:
        folder = Path(name)
        users, settings = folder / "users.toml", folder / "sqs.toml"
        users.touch(0o600)
        users.write_text(f'[users.{USER}]\nsecret = "{SECRET}"\n', "utf-8")
        settings.write_text("[users]\nin_cluster = false\n", "utf-8")
        signed = ["--config", str(settings), "--users", str(users)]
        with LocalCluster(3) as cluster, Service(cluster.servers, folder, *signed) as service:
            for language in options.languages:
                failed += not _passes(language, options.build.absolute(), service.url)
    return 1 if failed else 0


def _passes(language: str, build: Path, url: str) -> bool:
    """Run a program, and print its last line, or the end of what went wrong."""
    folder = build / language
    environment = {
        **os.environ, "AWS_ENDPOINT_URL_SQS": url, "AWS_ACCESS_KEY_ID": USER, "AWS_SECRET_ACCESS_KEY": SECRET,
        "AWS_DEFAULT_REGION": "us-east-1", "AWS_REGION": "us-east-1", "AWS_EC2_METADATA_DISABLED": "true",
    }
    shutil.copytree(HERE / language, folder, dirs_exist_ok=True)
    try:
        command = PROGRAMS[language](folder)
        done = subprocess.run(
            command, cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=RUN_S)
    except (OSError, subprocess.SubprocessError) as error:
        said = "".join(filter(None, (getattr(error, "stdout", None), getattr(error, "stderr", None))))
        print(f"FAILED {language}: {error} {said[-500:]}", flush=True)
        return False
    print(done.stdout.strip().splitlines()[-1], flush=True)
    return True


def _build(folder: Path, *command: str | Path) -> None:
    subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True, timeout=BUILD_S)


def _python(folder: Path, package: str) -> Command:
    python = folder / "venv/bin/python"
    if not python.exists():
        _build(folder, sys.executable, "-m", "venv", "venv")
        _build(folder, python, "-m", "pip", "install", "--quiet", package)
    return [python, "hello.py"]


def _node(folder: Path) -> Command:
    if not (folder / "node_modules").exists():
        _build(folder, "npm", "install", "--silent", "--no-audit", "--no-fund")
    return ["node", "hello.mjs"]


def _go(folder: Path) -> Command:
    _build(folder, "go", "mod", "tidy")
    _build(folder, "go", "build", "-o", "hello", ".")
    return [folder / "hello"]


def _java(folder: Path) -> Command:
    _build(folder, "mvn", "-q", "compile", "dependency:build-classpath", "-Dmdep.outputFile=classpath")
    return ["java", "-cp", f"target/classes:{(folder / 'classpath').read_text('utf-8').strip()}", "Hello"]


def _rust(folder: Path) -> Command:
    _build(folder, "cargo", "build", "-q")
    return [folder / "target/debug/hello-sqs"]


PROGRAMS: dict[str, Callable[[Path], Command]] = {
    "python": lambda folder: _python(folder, "boto3"), "aiobotocore": lambda folder: _python(folder, "aiobotocore"),
    "node": _node, "go": _go, "java": _java, "rust": _rust, "php": lambda _: ["php", "hello.php"],
    "ruby": lambda _: ["ruby", "hello.rb"],
}


if __name__ == "__main__":
    sys.exit(main())
