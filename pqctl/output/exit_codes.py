"""Exit codes. They mean the same for all commands, except for those that return a verdict, whose help says so."""

from __future__ import annotations

DONE = 0
REFUSED = 1             # the cluster refused
UNREACHED = 2           # no server serves or answers: certainly not done
UNKNOWN = 3             # sent, but the answer was lost
USAGE_ERROR = 64        # sysexits.h EX_USAGE; click's own 2 has another meaning here
NOT_ALLOWED = 77        # EX_NOPERM
BUG = 70                # EX_SOFTWARE
FILE_ERROR = 74         # EX_IOERR
INTERRUPTED = 130       # 128 + SIGINT, as in shells; likewise for other signals
PIPE_CLOSED = 141       # 128 + SIGPIPE


class Failure(Exception):
    """Ends a command with this exit code and this sentence."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code


_COMMON = {
    UNREACHED: "no server serves, or none answers: certainly not done",
    UNKNOWN: "the answer was lost: it may or may not have been done",
    USAGE_ERROR: "wrong usage: arguments, files or configuration",
    FILE_ERROR: "a file could not be read or written",
    NOT_ALLOWED: "wrong user or secret, or not permitted",
    INTERRUPTED: "interrupted",
}


def epilog(done: str = "done", refused: str = "refused; the message has the servers' words", **others: str) -> str:
    """Return the end of a help page. `others` replace the texts of `unreached` and `unknown`; "" omits one."""
    texts = {DONE: done, REFUSED: refused, **_COMMON}
    texts[UNREACHED] = others.get("unreached", texts[UNREACHED])
    texts[UNKNOWN] = others.get("unknown", texts[UNKNOWN])
    lines = [f"  {code:<4} {text}" for code, text in texts.items() if text]
    return "\b\n" + "\n".join(["Exit codes:", *lines])      # \b: click leaves the lines as they are


STEERING = epilog()
READING = epilog(done="answered", unreached="no server answers, or none serves", unknown="")
HEALTH = epilog(
    done="healthy",
    refused="degraded, but serving",
    unreached="not serving",
    unknown="",
)
