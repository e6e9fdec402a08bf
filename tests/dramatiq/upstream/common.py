"""Stands in for the tests/common.py that Dramatiq's tests import and that is not in its sources on the index."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pika  # type: ignore[import-not-found, import-untyped, unused-ignore]
import pytest
from dramatiq import Worker

RABBITMQ_USERNAME = RABBITMQ_PASSWORD = "guest"
RABBITMQ_CREDENTIALS = pika.PlainCredentials("guest", "guest")


@contextmanager
def worker(*arguments: Any, **options: Any) -> Iterator[Worker]:
    """Run a worker for a block."""
    one = Worker(*arguments, **options)
    one.start()
    try:
        yield one
    finally:
        one.stop()


def _not_skipped(reason: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(False, reason=reason)


skip_in_ci = _not_skipped("CI")
skip_on_windows = _not_skipped("Windows")
skip_on_pypy = _not_skipped("PyPy")
skip_with_gevent = _not_skipped("gevent")
skip_without_gevent = pytest.mark.skip(reason="no gevent here")
skip_unless_rabbit_mq = pytest.mark.skip(reason="no RabbitMQ here")
