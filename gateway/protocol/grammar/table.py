"""Each verb has one small function from the words of its line to a request.

Verbs are read in any case, keywords only in upper case.
"""

from __future__ import annotations

from gateway.protocol import requests
from gateway.protocol.arguments import ArgumentError, unsigned
from gateway.protocol.grammar.heads import Parse, Words
from gateway.protocol.grammar.lists import runlist, total
from gateway.protocol.grammar.no_arguments import alone
from gateway.protocol.grammar.queues import policy
from gateway.protocol.grammar.selectors import peek
from gateway.protocol.grammar.servers import between_servers, cluster, sync
from gateway.protocol.grammar.sessions import NUMBERED, req, session
from gateway.protocol.grammar.users import auth, user

VERBS: dict[bytes, Parse] = {
    **NUMBERED,
    b"REQ": req,
    b"SESSION": session,
    b"TAKEN": alone(requests.Taken()),
    b"TOTAL": total,
    b"PEEK": peek,
    b"BEGIN": alone(requests.Begin()),
    b"ROLLBACK": alone(requests.Rollback()),
    b"POLICY": policy,
    b"RUNLIST": runlist,
    b"SNAPSHOT": between_servers(requests.Snapshot()),
    b"INTERCONNECT": between_servers(requests.Interconnect()),
    b"OFFLINE": alone(requests.Offline()),
    b"ONLINE": alone(requests.Online()),
    b"QUIT": alone(requests.Quit()),
    b"SHUTDOWN": alone(requests.Shutdown()),
    b"SYNC": sync,
    b"CAPS": alone(requests.Caps()),
    b"PING": alone(requests.Ping()),
    b"CLUSTER": cluster,
    b"AUTH": auth,
    b"USER": user,
}


# The place of the length in the line of each verb that always has data.
_LENGTH_AT = {b"PUT": 3, b"CLONE": 1}
# Verbs with a length at the end of their line, behind DATA, or with none.
_LENGTH_LAST = (b"CHANGE", b"MOVE")
_BEFORE_DATA = (*_LENGTH_AT, *_LENGTH_LAST, b"PUTS", b"SYNC", b"REQ")


def block_length(words: Words) -> int | None:
    """The length of the data block behind a malformed line: 0 when there is none, None when unreadable."""
    first = 0
    while first + 2 < len(words) and words[first].upper() == b"REQ":
        first += 1 if words[first + 1].upper() in _BEFORE_DATA else 2       # the number may have been forgotten
    words = words[first:] if first else words
    verb = words[0].upper()
    if verb == b"PUTS":         # how many blocks follow is not known
        return None
    if verb in _LENGTH_LAST:
        if b"DATA" not in words[1:]:
            return 0
        at = len(words) - 1 if words[-2] == b"DATA" else len(words)
    elif verb == b"SYNC" and len(words) > 1 and words[1].upper() == b"PUT":
        at = 4
    else:
        at = _LENGTH_AT.get(verb, 0)
    if at == 0:
        return 0
    return length_at(words, at)


def length_at(words: Words, at: int) -> int | None:
    """The length in the word at this position, None when it is unreadable or missing."""
    try:
        return unsigned(words[at]) if at < len(words) else None
    except ArgumentError:
        return None
