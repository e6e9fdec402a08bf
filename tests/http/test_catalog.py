"""Every command that a program needs has its place; the others are listed with a reason."""

from __future__ import annotations

import json

import pytest
from fastapi import FastAPI
from sockpq_http.routes.table import LEFT_OUT, ROUTES
from sockpq_http.server.app import application

from sockpqd.gateway.commands.catalog import ROWS
from sockpqd.gateway.protocol.responses import FEATURES

# The extensions of the protocol, by the requests and fields that stand for them.
PLACES = {
    "batch": "TakeOfSeveral.count", "within": "Take.wait", "meta": "JobView.attempt", "itemfilter": "Take.item",
    "delay": "PutJob.delay", "ttl": "PutJob.ttl", "every": "PutJob.every", "after": "PutJob.after",
    "touch": "/v1/jobs/{job_id}/touch", "keys": "PutJob.key",
    "change": "/v1/jobs/{job_id}", "move": "/v1/jobs/{job_id}/move",
    "transaction": "/v1/transactions", "queues": "/v1/queues", "events": "/v1/events",
    "notify": "/v1/channels/{channel}/messages", "policy": "TakeOfSeveral.by", "fair": "/v1/fair/levels",
    "idle": "QueueSettings.idle", "deadletter": "/v1/jobs/{job_id}/bury", "number": "PutJob.number",
    "fanout": "/v1/topics/{topic}/jobs", "workers": "/v1/workers", "pulse": "/v1/pulses/{pulse}/wait",
    "cluster": "/v1/cluster", "head": "PutJob.headers", "dedup": "PutJob.dedup", "backoff": "QueueSettings.backoff",
    "retain": "QueueSettings.retain", "await": "/v1/jobs/number/{number}/await", "find": "/v1/find",
    "map": "/v1/cluster/map", "groups": "/v1/groups", "life": "JobView.life", "items": "/v1/items",
    "movequeue": "/v1/queues/{queue}/move", "progress": "Touch.progress", "seq": "/v1/queues/{queue}/places/{seq}",
}
# Extensions of connections and of operators, which requests do not have.
OF_CONNECTIONS = {"session", "bound", "auth", "help", "feed"}


@pytest.fixture(scope="module")
def app() -> FastAPI:
    return application()


def test_each_command_has_a_place_or_a_reason() -> None:
    placed = {command for routes in ROUTES.values() for route in routes for command in route.commands}
    commands = {row.word.decode() for row in ROWS}
    assert placed | LEFT_OUT.keys() == commands
    assert not placed & LEFT_OUT.keys()


def test_each_extension_has_a_place(app: FastAPI) -> None:
    document = json.loads(app.state.document)
    words = {word.decode() for level in FEATURES.values() for word in level}
    assert words == PLACES.keys() | OF_CONNECTIONS
    for word, place in PLACES.items():
        if place.startswith("/"):
            assert place in document["paths"], word
        else:
            model, _, field = place.partition(".")
            assert field in document["components"]["schemas"][model]["properties"], word


def test_each_request_has_a_name_of_its_own_and_says_what_it_does(app: FastAPI) -> None:
    operations = [one for path in json.loads(app.state.document)["paths"].values() for one in path.values()]
    names = [one["operationId"] for one in operations]
    assert len(names) == len(set(names)) > 80
    assert all(one["summary"] for one in operations)
