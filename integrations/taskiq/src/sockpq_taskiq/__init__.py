"""Taskiq on sockpqd: a broker, a result backend, retries and dead letters, and a source of schedules."""

from sockpq_taskiq._version import __version__
from sockpq_taskiq.broker import SockpqBroker
from sockpq_taskiq.middleware import SockpqMiddleware
from sockpq_taskiq.results import ResultIsMissing, SockpqResultBackend
from sockpq_taskiq.schedules import SockpqScheduleSource

__all__ = [
    "ResultIsMissing", "SockpqBroker", "SockpqMiddleware", "SockpqResultBackend", "SockpqScheduleSource", "__version__",
]
