"""`pqctl shell`: the protocol, typed by hand."""

from __future__ import annotations

from sockpqd.pqctl.invocation import Call, command
from sockpqd.pqctl.output import exit_codes


@command(None, "shell", timeout=10.0, epilog=exit_codes.epilog(done="the input has ended, whatever was answered"))
def shell(call: Call) -> int:
    """Type commands of the protocol, with history and completion, and see what the server answers.

    They go to the leader, and to the next one when it changes. Data may be given in the line, in place of its length:
    PUT notes 0 "hello", or PUT notes 0 <FILE. Commands also come from a pipe: echo 'TOTAL' | pqctl shell
    """
    from sockpqd.pqctl.shell import run

    return run.run(call)
