"""The listener for clients of beanstalkd (docs/BEANSTALKD.md).

A connection is served by the node where it arrives, and its calls are executed by the leader: here if this node
leads, otherwise by an errand to the node that does. Each connection has a session of its own, and its calls are
requests of it, so that a call which did not get an answer is simply sent again to the next leader.

Uses `beanstalk`, and of the gateway commands, waiting, auth and server.
"""

from sockpqd.gateway.beanstalkd.listener import BeanstalkdListener, do_errand

__all__ = ["BeanstalkdListener", "do_errand"]
