"""A plugin of pytest for moto's tests: deletes all queues before each, as moto's own server does between them.

Left out is what looks into moto's memory, and what counts on regions with queues of their own. It is imported as a
module of its own: moto's tests are a package `tests`, too.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

os.environ["MOTO_CALL_RESET_API"] = "false"
LEFT_OUT = {
    "test_create_queues_in_multiple_region": "regions are names only",
    "test_is_empty_redrive_policy_returns_true_for_empty_and_falsy_values": "calls a method of moto's class",
    "test_is_empty_redrive_policy_returns_false_for_valid_policy_format": "calls a method of moto's class",
}


def pytest_collection_modifyitems(items: list[pytest.Function]) -> None:
    """Skip what is left out."""
    for item in items:
        if item.originalname in LEFT_OUT:
            item.add_marker(pytest.mark.skip(reason=LEFT_OUT[item.originalname]))


@pytest.fixture(autouse=True)
def _no_queues() -> Iterator[None]:
    sqs = boto3.session.Session().client(
        "sqs", endpoint_url=os.environ["TEST_SERVER_MODE_ENDPOINT"], region_name="us-east-1")
    _clear(sqs)
    yield
    _clear(sqs)


def _clear(sqs: Any) -> None:
    for url in sqs.list_queues().get("QueueUrls", []):
        with suppress(ClientError):
            sqs.delete_queue(QueueUrl=url)


@pytest.hookimpl(tryfirst=True)
def pytest_fixture_setup(fixturedef: Any, request: Any) -> str | None:
    """Give moto's tests the account, for which they ask Amazon's STS."""
    if fixturedef.argname != "account_id":
        return None
    account = os.environ["SQS_ACCOUNT"]
    fixturedef.cached_result = (account, fixturedef.cache_key(request), None)
    return account
