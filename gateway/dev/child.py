"""A node as a child process, which ends with its parent, even if that is killed."""

from __future__ import annotations

import asyncio
import ctypes
import os
import signal
import sys

from sockpqd.gateway.dev.folder import DevNode, child_environment

PR_SET_PDEATHSIG = 1        # prctl(2)


async def start(node: DevNode) -> asyncio.subprocess.Process:
    """Start this program for the node. It does not receive the terminal's Ctrl-C: its parent ends it."""
    prctl = ctypes.CDLL(None).prctl     # found here, as little can be done between fork and exec
    parent = os.getpid()

    def end_with_parent() -> None:
        prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
        if os.getppid() != parent:      # it has died meanwhile
            os._exit(1)

    with node.log.open("ab") as log:
        return await asyncio.create_subprocess_exec(
            sys.executable, sys.argv[0], "--config", str(node.file), stdin=asyncio.subprocess.DEVNULL, stdout=log,
            stderr=log, start_new_session=True, preexec_fn=end_with_parent,
            env={"SOCKPQD_LOG_FORMAT": "text", **child_environment()},
        )


def how_ended(code: int) -> str:
    """Describe an exit code of a process: 'was killed by SIGKILL', 'ended with exit code 1'."""
    if code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"
    return "was shut down" if code == 0 else f"ended with exit code {code}"
