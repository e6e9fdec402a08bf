"""What clients asked for and what they were refused, counted as plain numbers on the way."""

from __future__ import annotations

from collections import defaultdict

from core import (
    Batch,
    Bury,
    Change,
    Configure,
    ConfigureQueue,
    CreateQueue,
    Delete,
    Done,
    DoneAll,
    DoneLast,
    Get,
    Kick,
    Later,
    LaterAll,
    LaterWith,
    Move,
    PauseQueue,
    Pick,
    Put,
    PutWith,
    ResumeQueue,
    Touch,
)
from gateway.protocol import requests

# The words of the protocol for each kind of request; GETBE counts as GETB.
VERBS: dict[type, str] = {
    Put: "PUT",
    PutWith: "PUT",
    requests.Puts: "PUTS",
    Get: "GET",
    Pick: "GET",
    Done: "DONE",
    DoneAll: "DONE",
    DoneLast: "DONE",
    Later: "LATER",
    LaterAll: "LATER",
    LaterWith: "LATER",
    requests.BlockingGet: "GETB",
    requests.PutWait: "PUT WAIT",
    Touch: "TOUCH",
    Change: "CHANGE",
    Delete: "DELETE",
    Move: "MOVE",
    Bury: "BURY",
    requests.BuryRequest: "BURY",
    Kick: "KICK",
    requests.Begin: "BEGIN",
    requests.Commit: "COMMIT",
    requests.Rollback: "ROLLBACK",
    requests.PolicyDefault: "POLICY",
    requests.Peek: "PEEK",
    requests.PeekQueue: "PEEK",
    CreateQueue: "QUEUE CREATE",
    ConfigureQueue: "QUEUE CONFIG",
    requests.QueueConfig: "QUEUE CONFIG",
    requests.DropQueue: "QUEUE DELETE",
    requests.PurgeRequest: "QUEUE PURGE",
    PauseQueue: "QUEUE PAUSE",
    ResumeQueue: "QUEUE RESUME",
    requests.QueueStat: "QUEUE STAT",
    Configure: "CONFIG",
    requests.Config: "CONFIG",
    requests.CloneStart: "CLONE",
    requests.Total: "TOTAL",
    requests.QueueList: "QUEUE LIST",
    requests.RunList: "RUNLIST",
    requests.Snapshot: "SNAPSHOT",
    requests.Interconnect: "INTERCONNECT",
    requests.Offline: "OFFLINE",
    requests.Online: "ONLINE",
    requests.Quit: "QUIT",
    requests.Shutdown: "SHUTDOWN",
    requests.Caps: "CAPS",
    requests.Ping: "PING",
    requests.SessionOpen: "SESSION",
    requests.SessionAttach: "SESSION",
    requests.SessionClose: "SESSION CLOSE",
    requests.SessionList: "SESSION LIST",
    requests.SessionEnd: "SESSION END",
    requests.Taken: "TAKEN",
    requests.Auth: "AUTH",
    requests.AuthWord: "AUTH",
    requests.UserSet: "USER SET",
    requests.UserDelete: "USER DELETE",
    requests.UserList: "USER LIST",
    requests.ClusterStatus: "CLUSTER STATUS",
    requests.ClusterLeader: "CLUSTER LEADER",
    requests.ClusterHash: "CLUSTER HASH",
    requests.ClusterAdd: "CLUSTER ADD",
    requests.ClusterRemove: "CLUSTER REMOVE",
    requests.ClusterTransfer: "CLUSTER TRANSFER",
    requests.ClusterSwitch: "CLUSTER ONLINE",
    requests.ClusterSnapshot: "CLUSTER SNAPSHOT",
}
# What is around a command (which is counted itself), a piece of one, or none: those are among the errors.
NOT_COUNTED = (Batch, requests.Numbered, requests.Bound, requests.CloneData, requests.Refused, requests.Broken)


class Tally:
    """Numbers that only grow, from 0 at the start of the process."""

    def __init__(self) -> None:
        self.commands: defaultdict[type, int] = defaultdict(int)        # by kind of request
        self.errors: defaultdict[bytes, int] = defaultdict(int)         # by the three digits of the answer
        self.connections = 0                # clients that came and were let in
        self.refused_connections = 0        # and those that were not: there were too many

    def refused(self, answer: bytes) -> None:
        """A command got this answer, which is not a success."""
        self.errors[answer[:3]] += 1

    def by_verb(self) -> dict[str, int]:
        """Commands by the protocol's words, those that never came included."""
        counts = dict.fromkeys(VERBS.values(), 0)
        for kind, verb in VERBS.items():
            counts[verb] += self.commands[kind]
        return counts
