"""What a command could not do: as an exit code, as a word for programs and as a sentence for people."""

from __future__ import annotations

from sockpq import BadArguments, NotExecuted, NotServing, OutcomeUnknown, Unavailable

from pqctl.exits import FILE_ERROR, REFUSED, UNKNOWN, UNREACHED, USAGE_ERROR, Failure

KINDS = {
    REFUSED: "refused", UNREACHED: "unreached", UNKNOWN: "unknown", FILE_ERROR: "file",
}


def as_failure(error: Exception) -> Failure | None:
    """The failure an error of the client library stands for; None when it is something else."""
    match error:
        case Failure():
            return error
        case BadArguments():
            return Failure(USAGE_ERROR, str(error))
        case OutcomeUnknown():
            return Failure(UNKNOWN, f"nobody knows whether it was done: {error}")
        case Unavailable():
            return Failure(UNREACHED, str(error))
        case NotServing():
            return Failure(UNREACHED, f"the server does not serve: {error}")
        case NotExecuted():
            return Failure(REFUSED, f"refused: {error}")
        case OSError():
            return Failure(FILE_ERROR, str(error))
        case MemoryError():
            return Failure(FILE_ERROR, "it does not fit into the memory of this machine")
    return None
