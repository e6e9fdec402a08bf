"""A process of sockpq-sqs before a cluster, for tests that break one of them."""

from __future__ import annotations

import http.client
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import boto3
from botocore.config import Config

from devcluster.ports import free_ports
from tests.waiting import until

USER, SECRET = "test", "test-secret-test-secret"
STOP_S = 60


class Service:
    """A front end on a port of its own, also after a restart: `with Service(cluster.servers, folder) as service:`."""

    def __init__(self, servers: Sequence[str], folder: Path, *arguments: str, port: int = 0) -> None:
        """`folder`: for its log; `port`: 0 for any that is free."""
        self.port = port or free_ports(1)[0]
        self.url = f"http://127.0.0.1:{self.port}"
        self._log = folder / "sockpq-sqs.log"
        self._command = [
            sys.executable, "-m", "sockpq_sqs.main", "--listen", f"127.0.0.1:{self.port}", "--servers",
            ",".join(servers), *arguments,
        ]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait until it answers."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(self._command, stdout=log, stderr=log)
        until(self._answers, lambda: f"the front end does not answer: {self.log()}")

    def _answers(self) -> bool:
        assert self._process
        assert self._process.poll() is None, self.log()
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=5)
        try:
            connection.request("GET", "/healthz")
            return connection.getresponse().status == 200
        except OSError:
            return False
        finally:
            connection.close()

    def kill(self) -> None:
        """End it as a crash does."""
        assert self._process
        self._process.kill()
        self._process.wait(STOP_S)

    def log(self) -> str:
        """Return the end of what it printed."""
        return self._log.read_text("utf-8", "replace")[-3000:]

    def client(self) -> Any:
        """Return a client of boto3, which repeats what fails as it does everywhere."""
        return boto3.session.Session().client(
            "sqs", endpoint_url=self.url, region_name="us-east-1", aws_access_key_id=USER, aws_secret_access_key=SECRET,
            config=Config(retries={"mode": "standard", "total_max_attempts": 30}, read_timeout=60, connect_timeout=5),
        )

    def __enter__(self) -> Service:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        assert self._process
        if self._process.poll() is None:
            self._process.terminate()
            try:
                self._process.wait(STOP_S)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait(STOP_S)
