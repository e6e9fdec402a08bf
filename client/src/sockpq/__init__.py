"""Client library of sockpqd, the replicated priority job queue. Examples: README.md; errors: errors.py."""

from sockpq.client import Client, survey
from sockpq.errors import (
    BadArguments,
    BatchFailed,
    Busy,
    ClientClosed,
    DataTooLarge,
    InvalidSnapshot,
    JobNotFound,
    NoOutput,
    NotExecuted,
    NotServing,
    NotSupported,
    OutcomeUnknown,
    ProtocolError,
    Refused,
    SockpqError,
    Unavailable,
)
from sockpq.job import Job
from sockpq.model import Finished, Leader, NodeStatus, QueueTotals, RunningJob, StateHash, Totals
from sockpq.survey import ServerView

__all__ = [
    "BadArguments",
    "BatchFailed",
    "Busy",
    "Client",
    "ClientClosed",
    "DataTooLarge",
    "Finished",
    "InvalidSnapshot",
    "Job",
    "JobNotFound",
    "Leader",
    "NoOutput",
    "NodeStatus",
    "NotExecuted",
    "NotServing",
    "NotSupported",
    "OutcomeUnknown",
    "ProtocolError",
    "QueueTotals",
    "Refused",
    "RunningJob",
    "ServerView",
    "SockpqError",
    "StateHash",
    "Totals",
    "Unavailable",
    "survey",
]
