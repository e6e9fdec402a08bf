"""`manage.py sockpq_worker`: pqworker for the tasks of a backend, and with --relay the relay of its outbox."""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from sockpq.worker.program.log_handler import log_format_of

from sockpq_django.backend import SockpqBackend
from sockpq_django.backends import own_backend
from sockpq_django.operations.serving import BACKEND

APP = "sockpq_django.worker:app"
FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
LOOK_S = 0.2
PR_SET_PDEATHSIG = 1        # prctl(2)


class Command(BaseCommand):
    """Runs pqworker with the settings of this project."""

    help = "Runs the tasks of a backend, by pqworker: SIGTERM finishes what runs, a second one stops at once."
    requires_system_checks: Sequence[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--backend", metavar="ALIAS", help='the backend in TASKS; by default "default"')
        parser.add_argument("--queues", metavar="A,B", help="take tasks of these queues only, as TASKS names them")
        parser.add_argument("-c", "--concurrency", metavar="N", help="tasks at a time; default: one for each processor")
        parser.add_argument("--relay", action="store_true", help="run the relay of the outbox as well")
        parser.add_argument(
            "pqworker", nargs="*", metavar="-- OPTIONS", help="options of pqworker (`pqworker --help`), after --"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Replace this process with pqworker, or run pqworker and the relay as child processes."""
        try:
            backend = own_backend(options["backend"])
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from error
        line = worker_line(backend, options["queues"], options["concurrency"], options["pqworker"])
        environment = environment_of(backend.alias)
        if not options["relay"]:
            os.execve(line[0], line, environment)       # never returns
        if backend.settings.outbox is None:
            raise CommandError(f'TASKS["{backend.alias}"] has no OUTBOX, so there is nothing to relay')
        relay = [
            sys.executable, "-m", "django", "sockpq_relay", "--backend", backend.alias,
            "--log-format", log_format_of(line[1:]),
        ]
        sys.exit(run_both(line, relay, environment))


def worker_line(backend: SockpqBackend, queues: str | None, concurrency: str | None, more: Sequence[str]) -> list[str]:
    """Return the command line of pqworker. Raises CommandError."""
    found = shutil.which("pqworker", path=str(Path(sys.executable).parent)) or shutil.which("pqworker")
    if found is None:
        raise CommandError("there is no program pqworker: pip install 'sockpq[worker]' into this environment")
    line = [found, APP, "--by", "priority"]
    if queues is not None:
        wanted = [name.strip() for name in queues.split(",")]
        unknown = [name for name in wanted if name not in backend.queues]
        if unknown:
            raise CommandError(f'TASKS["{backend.alias}"] has no queue {", ".join(unknown)}')
        line += ["--queues", ",".join(map(backend.queue, wanted))]
    if concurrency is not None:
        line += ["--concurrency", concurrency]
    return [*line, *more]


def environment_of(alias: str) -> dict[str, str]:
    """Return the environment in which another program finds this project and its backend."""
    paths = [sys.path[0] or os.getcwd(), *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths), BACKEND: alias}


def run_both(worker: Sequence[str], relay: Sequence[str], environment: dict[str, str]) -> int:
    """Run two programs until one of them ends, then end the other; returns the exit code of the first that ended.

    Signals to this process go to both. If it is killed, both get SIGTERM: whatever supervises it starts them again.
    """
    prctl = ctypes.CDLL(None).prctl     # found here, as little can be done between fork and exec
    parent = os.getpid()

    def end_with_parent() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:      # it has died meanwhile
            os._exit(1)

    programs: list[subprocess.Popen[bytes]] = []

    def forward(number: int, frame: FrameType | None) -> None:
        for program in programs:
            if program.poll() is None:
                program.send_signal(number)

    for number in FORWARDED:
        signal.signal(number, forward)
    for line in (worker, relay):
        # In a group of its own, so that Ctrl-C comes once, from here.
        programs.append(subprocess.Popen(
            line, env=environment, process_group=0, preexec_fn=end_with_parent,
        ))
    while all(program.poll() is None for program in programs):
        time.sleep(LOOK_S)
    code = next(program.returncode for program in programs if program.returncode is not None)
    for program in programs:
        if program.poll() is None:
            program.terminate()
        program.wait()
    return code
