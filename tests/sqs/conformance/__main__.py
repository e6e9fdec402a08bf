"""Checks an endpoint: `python -m tests.sqs.conformance --endpoint http://127.0.0.1:9324 [--only fifo]`.

The protocol is that of the installed botocore: JSON with a current one, Query with one older than 1.31.81, whose folder
stands first on PYTHONPATH (`pip install --target old botocore==1.31.80 boto3==1.28.80`). The areas `json` and `query`
speak HTTP themselves. The exit code is 1 if a check failed.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import re
import sys
import time
from typing import Any, NamedTuple

from botocore.exceptions import ClientError, EndpointConnectionError

from tests.sqs.conformance import (  # noqa: F401, they register their checks
    batches,
    dead_letters,
    fifo,
    json_protocol,
    messages,
    query_protocol,
    queues,
    signatures,
    visibility,
)
from tests.sqs.conformance.endpoint import CHECKS, Check, Endpoint, OneCheck, Skip


class Result(NamedTuple):
    """The outcome of a check: "pass", "fail" or "skip", why, and how many seconds it took."""

    state: str
    why: str
    seconds: float


def main(arguments: list[str]) -> int:
    """Run the checks and print those that do not pass; returns the exit code."""
    options = _parser().parse_args(arguments)
    chosen = [
        one for one in CHECKS
        if (not options.only or re.search(options.only, f"{one.area}.{one.name}"))
        and one.area not in options.without.split(",") and not (one.timed and options.untimed)
    ]
    endpoint = Endpoint(options)
    print(f"{options.endpoint}, protocol of boto3: {endpoint.protocol}")
    try:
        endpoint.client.list_queues(QueueNamePrefix="none-such")
    except EndpointConnectionError as error:
        print(error, file=sys.stderr)
        return 2
    except ClientError:
        pass
    results = []
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        outcomes = pool.map(lambda one: _run(one, endpoint, options), chosen)
        for one, result in zip(chosen, outcomes, strict=True):
            results.append(result.state)
            if result.state != "pass" or options.verbose:
                name = f"{one.area}.{one.name} [{one.truth}]"
                print(f"{result.state.upper():4} {name} {result.seconds:.1f} s {result.why}", flush=True)
    print(", ".join(f"{results.count(state)} {word}" for state, word in (
        ("pass", "passed"), ("fail", "failed"), ("skip", "skipped"))))
    return 1 if "fail" in results else 0


def _run(one: OneCheck, endpoint: Endpoint, options: Any) -> Result:
    if one.slow and not options.slow:
        return Result("skip", "slow", 0)
    if one.needs_auth and not options.auth:
        return Result("skip", "needs --auth", 0)
    tested, begun = Check(endpoint), time.monotonic()
    state, why = "pass", ""
    try:
        one.function(tested)
    except Skip as reason:
        state, why = "skip", str(reason)
    except AssertionError as reason:
        state, why = "fail", str(reason)
    except Exception as error:      # of the SDK: it must not end the others
        state, why = "fail", f"{type(error).__name__}: {error!s:.300}"
    finally:
        tested.close()
    return Result(state, why, time.monotonic() - begun)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="tests.sqs.conformance", description="Checks an endpoint of SQS.")
    parser.add_argument("--endpoint", required=True)
    parser.add_argument("--region", default="us-east-1")
    parser.add_argument("--access-key", default="test")
    parser.add_argument("--secret-key", default="test-secret-test-secret")
    parser.add_argument("--only", help="regular expression over area.name")
    parser.add_argument("--without", default="", help="areas to leave out, with commas")
    parser.add_argument("--auth", action="store_true", help="the server verifies signatures: check that, too")
    parser.add_argument("--slow", action="store_true", help="with those that take minutes")
    parser.add_argument("--untimed", action="store_true", help="without those that a slow machine fails")
    parser.add_argument("--jobs", type=int, default=8, help="checks at a time")
    parser.add_argument("-v", "--verbose", action="store_true", help="print those that pass, too")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
