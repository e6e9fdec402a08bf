"""beanstalkd's protocol, as its release 1.13 speaks it: lines, answers and commands, without sockets and timers.

`Conversation` is one connection, and `Connection` the shell around it for asyncio. What its commands ask of the queue
it says to a `Backend`, in the words of `calls`. This package imports nothing of ours.
"""

from sockpqd.beanstalk import calls
from sockpqd.beanstalk.calls import Backend, Call, Done, Failure, Result
from sockpqd.beanstalk.connection import Connection, Host, Stay
from sockpqd.beanstalk.conversation import Conversation, Link
from sockpqd.beanstalk.limits import BODY_BYTES_MAX, NAMES_PER_COMMAND, U32_MAX
from sockpqd.beanstalk.server import Server

__all__ = [
    "BODY_BYTES_MAX",
    "NAMES_PER_COMMAND",
    "U32_MAX",
    "Backend",
    "Call",
    "Connection",
    "Conversation",
    "Done",
    "Failure",
    "Host",
    "Link",
    "Result",
    "Server",
    "Stay",
    "calls",
]
