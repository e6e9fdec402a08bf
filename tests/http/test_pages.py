"""Health, readiness, metrics, the OpenAPI document and its viewer, which loads nothing from elsewhere."""

from __future__ import annotations

import json
import re
from pathlib import Path

import httpx
from prometheus_client.parser import text_string_to_metric_families
from sockpq.testing import Server
from sockpq_http.server.app import application
from sockpq_http.server.openapi import is_keyed

from tests.http.door import Door
from tests.http.test_jobs import put
from tests.waiting import until

DOCUMENT = Path(__file__).parents[2] / "docs" / "openapi.json"


def test_the_document_in_docs_is_that_of_the_code() -> None:
    """If this is red: `sockpq-http openapi > docs/openapi.json`, and look at the difference."""
    assert DOCUMENT.read_text("utf-8") == application().state.document


def test_the_document_has_every_answer_in_one_form(web: httpx.Client) -> None:
    document = web.get("/openapi.json").json()
    assert document["openapi"].startswith("3.1")
    for path, operations in document["paths"].items():
        for operation in operations.values():
            assert ("422" in operation["responses"]) == is_keyed(operation), path
            assert "application/problem+json" in operation["responses"]["400"]["content"], path
    text = json.dumps(document)
    for name in set(re.findall(r'"#/components/schemas/(\w+)"', text)):
        assert name in document["components"]["schemas"], name


def test_the_viewer_loads_nothing_from_elsewhere(web: httpx.Client) -> None:
    page = web.get("/docs")
    assert page.status_code == 200
    names = re.findall(r'(?:src|href)="([^"]+)"', page.text)
    assert len(names) == 3
    for name in names:
        assert web.get(f"/{name}").status_code == 200, name
        assert not name.startswith(("http:", "https:", "//"))
    assert "default-src 'none'" in page.headers["content-security-policy"]
    assert "Apache" in web.get("/docs/LICENSE").text
    assert web.get("/docs/..%2fapp.py").status_code == 404


def test_metrics_count_requests_without_names_of_queues(web: httpx.Client) -> None:
    put(web, "secret_name", text="x")
    web.get("/v1/nothing/of/this/name")
    text = web.get("/metrics").text
    assert "secret_name" not in text
    assert "of/this/name" not in text
    samples = {
        (sample.labels["method"], sample.labels["route"], sample.labels["status"]): sample.value
        for family in text_string_to_metric_families(text) for sample in family.samples
        if sample.name == "sockpq_http_requests_total"
    }
    assert samples["POST", "/v1/queues/{queue}/jobs", "201"] >= 1
    assert samples["GET", "other", "404"] >= 1


def test_readiness_goes_first_when_the_program_stops(http_node: Server) -> None:
    with Door(http_node.address, drain_s=3600.0) as door, door.client() as web:
        assert web.get("/readyz").json() == {"status": "ready"}
        door.begin_to_stop()
        until(lambda: web.get("/readyz").status_code == 503, "it is not ready")
        assert web.get("/healthz").status_code == 200
        assert web.get("/v1/totals").status_code == 200         # whoever comes is still served
        door._instance.should_exit = True                       # type: ignore[union-attr]


def test_it_is_not_ready_without_a_cluster() -> None:
    with Door("127.0.0.1:1") as door, door.client() as web:
        assert web.get("/readyz").status_code == 503
        assert web.get("/healthz").status_code == 200
