"""The program and the example receivers as processes, for tests of what they do as a whole."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "integrations" / "http" / "examples"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
END_S = 60


@contextmanager
def pusher(config: Path, text: str, address: str) -> Iterator[subprocess.Popen[str]]:
    """Run the program with this configuration until the end of the block."""
    config.write_text(text)
    with process([sys.executable, "-m", "sockpq_http.main", "push", str(config)], SOCKPQ_SERVERS=address) as one:
        yield one


@contextmanager
def example_receiver(name: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """Run an example receiver on a free port, which is returned; skips where its language is missing."""
    language = sys.executable if name.endswith(".py") else shutil.which("node")
    if language is None:
        pytest.skip("there is no node")
    with process([language, str(EXAMPLES / name), "0"], RECEIVER_SECRET=SECRET) as one:
        assert one.stdout
        yield one, int(one.stdout.readline().split()[-1])


@contextmanager
def process(command: list[str], **variables: str) -> Iterator[subprocess.Popen[str]]:
    """Run a program; it ends with the block."""
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env={**os.environ, **variables},
    ) as one:
        try:
            yield one
        finally:
            if one.poll() is None:
                one.send_signal(signal.SIGKILL)
            for stream in (one.stdout, one.stderr):
                if stream is not None:
                    stream.close()
