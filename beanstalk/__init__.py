"""beanstalkd's protocol, as its release 1.13 speaks it: lines, answers and commands, without sockets and timers.

`BeanstalkdConversation` is the state of one connection, and `ClientConnection` its shell for asyncio. Commands are
executed by a `Backend`, as the structs of `calls`. Imports no other package of the server.
"""

from sockpqd.beanstalk import calls
from sockpqd.beanstalk.calls import Backend, Call, CallFailure, Done, Result
from sockpqd.beanstalk.connection import ClientConnection, Host, Stay
from sockpqd.beanstalk.conversation import BeanstalkdConversation, ClientLink
from sockpqd.beanstalk.limits import BODY_BYTES_MAX, NAMES_PER_COMMAND, U32_MAX
from sockpqd.beanstalk.server import BeanstalkdServer

__all__ = [
    "BODY_BYTES_MAX",
    "NAMES_PER_COMMAND",
    "U32_MAX",
    "Backend",
    "BeanstalkdConversation",
    "BeanstalkdServer",
    "Call",
    "CallFailure",
    "ClientConnection",
    "ClientLink",
    "Done",
    "Host",
    "Result",
    "Stay",
    "calls",
]
