"""Dramatiq on sockpqd: a broker, a result backend, and callbacks of groups."""

from sockpq_dramatiq._version import __version__
from sockpq_dramatiq.broker import SockpqBroker
from sockpq_dramatiq.cancellation import Abort
from sockpq_dramatiq.groups import SockpqGroupCallbacks
from sockpq_dramatiq.messages import SentMessage
from sockpq_dramatiq.results import SockpqResults

__all__ = ["Abort", "SentMessage", "SockpqBroker", "SockpqGroupCallbacks", "SockpqResults", "__version__"]
