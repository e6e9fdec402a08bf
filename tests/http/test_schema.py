"""Random requests by the OpenAPI document: each answer is in it, and none says that the program failed."""

from __future__ import annotations

import json
import os
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from sockpq_http.server.app import application

from tests.http.door import Door

EXAMPLES = int(os.environ.get("SOCKPQ_HTTP_EXAMPLES", "2"))     # make test-http has more
CHECKS = [status_code_conformance, content_type_conformance, response_headers_conformance, response_schema_conformance]
STREAMS = {"/v1/events"}        # which have no end
SCHEMA = schemathesis.openapi.from_dict(json.loads(application().state.document))
OPERATIONS = [found.ok() for found in SCHEMA.get_all_operations()]


def hasten(case: Any) -> None:
    """Let a request that would wait not do so."""
    for part in (case.body, case.query):
        if isinstance(part, dict) and "wait" in part:
            part["wait"] = "0" if part is case.query else 0
    if case.operation.path.endswith(("/wait", "/call")) and isinstance(case.body, dict):
        case.body["wait"] = 0
    if case.operation.path.endswith("/await"):
        case.query = {**(case.query or {}), "wait": "0"}


@pytest.mark.parametrize(
    "operation", [one for one in OPERATIONS if one.path not in STREAMS], ids=lambda one: one.label
)
def test_answers_are_as_documented(operation: Any, door: Door, web: httpx.Client) -> None:
    @given(case=operation.as_strategy())
    @settings(
        max_examples=EXAMPLES, deadline=None, phases=[Phase.generate], suppress_health_check=list(HealthCheck),
        database=None,
    )
    def run(case: Any) -> None:
        hasten(case)
        response = case.call(base_url=door.url, timeout=120)
        assert response.status_code != 500, response.text
        case.validate_response(response, checks=CHECKS)

    run()
