"""beanstalkd's protocol, as its release 1.13 speaks it: lines, answers and commands, without sockets and timers.

`Conversation` is one connection, and `Connection` the shell around it for asyncio. What its commands ask of the queue
it says to a `Seat`, in the words of `calls`. This package imports nothing of ours.
"""

from beanstalk import calls
from beanstalk.calls import Call, Done, Failure, Result, Seat
from beanstalk.connection import Connection, Host, Stay
from beanstalk.conversation import Conversation, Link
from beanstalk.limits import BODY_BYTES_MAX, U32_MAX
from beanstalk.server import Server

__all__ = [
    "BODY_BYTES_MAX", "U32_MAX", "Call", "Connection", "Conversation", "Done", "Failure", "Host", "Link", "Result",
    "Seat", "Server", "Stay", "calls",
]
