"""A process of sockpq-sqs."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys

import boto3
import botocore.config

PATIENCE_S = 120


class Program:
    """A process of sockpq-sqs on a free port."""

    def __init__(self, servers: str, *arguments: str, listen: str = "127.0.0.1:0", **environment: str) -> None:
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("SOCKPQ", "AWS_", "XDG"))}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "sockpq_sqs.main", "--listen", listen, "--servers", servers, *arguments],
            env={**kept, "HOME": "/nonexistent", **environment}, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.log = ""
        for line in self.process.stderr:
            self.log += line
            if found := re.search(r"listening on .*:(\d+)$", line):
                self.url = f"http://127.0.0.1:{found[1]}"
                return
        raise AssertionError(self.log)

    def end(self) -> int:
        """End it as a service manager does; return its exit status."""
        self.process.send_signal(signal.SIGTERM)
        self.log += self.process.communicate(timeout=PATIENCE_S)[1]
        return self.process.returncode

    def sqs(self, key: str, secret: str) -> boto3.client:
        return boto3.session.Session().client(
            "sqs", endpoint_url=self.url, region_name="us-east-1", aws_access_key_id=key, aws_secret_access_key=secret,
            config=botocore.config.Config(read_timeout=PATIENCE_S))
