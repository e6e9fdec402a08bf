"""The listener for clients of beanstalkd (docs/BEANSTALKD.md).

A connection is served by the node where it arrives, and its calls are executed by the leader: a follower forwards them.
Each connection has a session of its own, and its calls are requests of it, so that a call which did not get an answer
is simply sent again to the next leader.

Uses `beanstalk`, and of the gateway commands, waiting, auth and server.
"""

from sockpqd.gateway.beanstalkd.listener import BeanstalkdListener, execute_call

__all__ = ["BeanstalkdListener", "execute_call"]
