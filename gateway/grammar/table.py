"""Each verb has one small function from the words of its line to a request.

Verbs are read in any case, keywords only in upper case.
"""

from __future__ import annotations

from gateway import requests
from gateway.grammar.heads import Parse, Words
from gateway.grammar.lists import queue, runlist, total
from gateway.grammar.servers import alone, between_servers, cluster, sync
from gateway.grammar.sessions import NUMBERED, req, session
from gateway.grammar.users import auth, user
from gateway.values import ArgumentError, unsigned

VERBS: dict[bytes, Parse] = {
    **NUMBERED,
    b"REQ": req,
    b"SESSION": session,
    b"TAKEN": alone(requests.Taken()),
    b"TOTAL": total,
    b"QUEUE": queue,
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


_BEFORE_DATA = (b"PUT", b"CLONE", b"SYNC", b"REQ")


def block_length(words: Words) -> int | None:
    """The length of the data block behind a malformed line (A7): 0 when its verb takes none, None when unreadable."""
    first = 0
    while first + 2 < len(words) and words[first].upper() == b"REQ":
        first += 1 if words[first + 1].upper() in _BEFORE_DATA else 2       # the number may have been forgotten
    words = words[first:] if first else words
    verb = words[0].upper()
    if verb == b"SYNC" and len(words) > 1 and words[1].upper() == b"PUT":
        at = 4
    else:
        at = {b"PUT": 3, b"CLONE": 1}.get(verb, 0)
    if at == 0:
        return 0
    try:
        return unsigned(words[at]) if at < len(words) else None
    except ArgumentError:
        return None
