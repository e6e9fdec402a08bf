"""The asyncio client: `sockpq.aio.Client` has the calls of `sockpq.Client`, as coroutines."""

from sockpq._async.client import Client
from sockpq._async.events import Events
from sockpq._async.getting import PendingJob
from sockpq._async.hold import Hold
from sockpq._async.job import Job
from sockpq._async.survey import survey
from sockpq._async.transaction import Transaction

__all__ = ["Client", "Events", "Hold", "Job", "PendingJob", "Transaction", "survey"]
