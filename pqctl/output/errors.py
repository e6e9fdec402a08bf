"""Errors of commands: their exit codes, their words for programs and their sentences for people."""

from __future__ import annotations

from sockpq import (
    AuthError,
    BadArguments,
    Elsewhere,
    ForbiddenError,
    ForeignCluster,
    NotExecuted,
    NotServing,
    OutcomeUnknown,
    Unavailable,
)

from sockpqd.pqctl.output.exit_codes import FILE_ERROR, NOT_ALLOWED, REFUSED, UNKNOWN, UNREACHED, USAGE_ERROR, Failure
from sockpqd.pqctl.output.fence import fenced, fenced_for

KINDS = {
    REFUSED: "refused", UNREACHED: "unreached", UNKNOWN: "unknown", FILE_ERROR: "file",
    NOT_ALLOWED: "not allowed",
}


UNSAYING = "409 Not Possible"       # the beginning of answers that are words for programs
EXPLAINED = {                   # explanations of error answers, see docs/PROTOCOL.md
    "409 User In File": "this user is in the servers' users file: change it there",
    "409 Change In Progress": "another change is not over: look for a LEARNER in `pqctl cluster status`",
    "409 Job Exists": "an unfinished job of the queue has this key: `pqctl job show QUEUE/KEY`",
    "409 Job Running": "a worker has it: `pqctl job running`",
    "409 Queue Exists": "change it by `pqctl queue config`",
    "409 Pulse Exists": "change it by `pqctl pulse config`",
    "409 Queue Not Empty": "it has jobs: `pqctl queue purge`, or --force",
    "409 Node Exists": "a member has this name: `pqctl cluster status`",
    "409 Last Node": "there is no other",
    "409 Not Possible alone": "no other node can lead now: `pqctl cluster status` shows whether one is up and online",
    "409 Not Possible behind": "it has not caught up",
    "409 Not Possible busy": "another transfer is in progress",
    "409 Not Possible down": "the leader has no connection to it",
    "409 Not Possible learner": "it does not count yet",
    "409 Not Possible offline": "it was switched offline: `pqctl node online`",
    "409 Not Possible quorum": "too few of the other nodes run, the cluster would stand still",
    "409 Not Possible timeout": "no node took over in time, the leader is the same",
    "409 Not Possible unknown": "there is no such node: `pqctl cluster status` shows them",
    "413 Data Too Large": "a job's data can have up to 8 MiB, or limits.data_bytes_max if set",
    "500 Invalid Snapshot": "the file is damaged, or was not made by `pqctl backup`; nothing was changed",
    "503 Queue Full": "its capacity is reached: `pqctl queue config`",
    "503 Queue Paused": "`pqctl queue resume` ends it",
    "503 Busy": "too many connections, or no room on the disks: `pqctl doctor --data-dir` on each node",
}


def _explained(error: Exception) -> str:
    """Return an error answer with its explanation, if any, which comes first if the answer is not informative."""
    words = str(error)
    if words not in EXPLAINED:
        return words
    return f"{EXPLAINED[words]} ({words})" if words.startswith(UNSAYING) else f"{words} ({EXPLAINED[words]})"


def _missing(error: ForbiddenError) -> str:
    return f"it needs the right {error.needs}" if error.needs else "the user has no right to do that"


def as_failure(error: Exception) -> Failure | None:
    """Convert an error of the client library to a failure; None if it is some other error."""
    match error:
        case Failure():
            return error
        case BadArguments():
            return Failure(USAGE_ERROR, str(error))
        case OutcomeUnknown():
            return Failure(UNKNOWN, f"it is unknown whether it was done: {error}")
        case Unavailable() | ForeignCluster():
            return Failure(UNREACHED, str(error))
        case NotServing():
            return Failure(UNREACHED, f"the server does not serve: {error}")
        case AuthError():
            hint = "" if "refuses" in str(error) else " (give --user and --secret-file)"
            return Failure(NOT_ALLOWED, f"{error}{hint}")
        case ForbiddenError():
            return Failure(NOT_ALLOWED, f"refused: {error.args[0]} ({_missing(error)}: an administrator sees the "
                           "rights of users in `pqctl user list`)")
        case Elsewhere():
            owner = "no cluster accepts the name now" if error.cluster is None else f"{error.cluster} owns the name"
            return Failure(REFUSED, f"refused: {error} ({owner}: `pqctl map show` has its servers, for --servers)")
        case NotExecuted():
            replica = fenced_for(error)
            return Failure(REFUSED, f"refused: {_explained(error) if replica is None else fenced(replica)}")
        case OSError():
            return Failure(FILE_ERROR, str(error))
        case MemoryError():
            return Failure(FILE_ERROR, "it does not fit into the memory of this machine")
    return None
