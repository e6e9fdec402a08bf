"""The load generator, bench/generator: a compiled program, because one in Python would be measured itself.

`make build/generator` builds it, and --help lists its options. It prints a JSON object: `rate` (operations a second; of
a worker's two the finished job counts), `srv_us_op` (processor time of the servers for each, microseconds), `put_us`
and `dlv_us` (p50, p99, p99.9 and the longest of a put, and from put to delivery). It may end before its time when
nearly all jobs of `--preload` are finished. With LG_SOCKPQ_PIPE=1 a worker of ours that takes one job at a time sends
DONE and its next GETB in one packet, as RabbitMQ's and NATS' acknowledgements are not waited for either.
"""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from bench.compare.workloads import Workload

FILL_S = 60.0
SLACK_S = 60.0                  # beyond the time that a run takes


class GeneratorError(Exception):
    """The generator failed; the message has its output."""


def descendants(of: int) -> list[int]:
    """Return the processes started by this one, and by those in turn. Source: /proc."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue            # it has ended
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, waiting = [], [of]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += below
    return sorted(found)


class Generator:
    """`program` against a system whose servers are all that this process has started."""

    def __init__(
        self, program: Path, system: str, hosts: Sequence[str], seconds: float, warm_s: float = 0.0,
    ) -> None:
        """`warm_s`: the time before the measurement, which takes `seconds`."""
        self._program = program
        self._system = system
        self._hosts = hosts
        self._seconds = seconds
        self._warm_s = warm_s

    def run(self, workload: Workload) -> dict[str, Any]:
        """Run a workload, after putting the jobs that it needs. Raises GeneratorError.

        A rate of 0 is an error: the workers found no jobs, for example.
        """
        options = list(workload.options)
        if workload.preload:
            wanted = round(workload.preload * workload.workers * (self._seconds + self._warm_s))
            filled = self.call("fill", ("-P", "10", "-W", "100", "--count", str(wanted), "--dur", str(FILL_S)), FILL_S)
            options += ["--preload", str(filled["puts"])]       # fewer, where putting them takes too long
        options += ["--warm", str(self._warm_s), "--dur", str(self._seconds)]
        result = self.call(workload.mode, options, self._seconds + self._warm_s, one_packet=workload.batch == 1)
        if not result["rate"]:
            raise GeneratorError(f"{self._system}, {workload.title}: nothing was done in the time that was measured")
        return result

    def call(
        self, mode: str, options: Iterable[str], seconds: float = 0.0, *, one_packet: bool = True,
    ) -> dict[str, Any]:
        """Call the program; returns what it prints. Raises GeneratorError. `one_packet`: LG_SOCKPQ_PIPE."""
        pids = ",".join(map(str, descendants(os.getpid())))
        command = [str(self._program), self._system, mode, "-h", ",".join(self._hosts), "--pids", pids, *options]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, check=False, timeout=seconds + SLACK_S,
                env={**os.environ, **({"LG_SOCKPQ_PIPE": "1"} if one_packet else {})},
            )
        except subprocess.TimeoutExpired as error:
            raise GeneratorError(f"{self._system} {mode} does not end") from error
        if done.returncode:
            raise GeneratorError(f"{self._system} {mode}: {done.stderr.strip()[-500:]}")
        result: dict[str, Any] = json.loads(done.stdout) if mode != "admin" else {}
        return result
