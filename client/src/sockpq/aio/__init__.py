"""The same client for asyncio: `sockpq.aio.Client` has the calls of `sockpq.Client`, as coroutines."""

from sockpq.aio.client import Client, survey
from sockpq.aio.job import Getting, Job
from sockpq.aio.transaction import Transaction

__all__ = ["Client", "Getting", "Job", "Transaction", "survey"]
