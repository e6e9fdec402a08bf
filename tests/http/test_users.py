"""Users of the cluster: Basic and Bearer, rights, wrong secrets, and a secret that is replaced."""

from __future__ import annotations

import signal
import subprocess
from base64 import b64encode
from collections.abc import Iterator
from time import sleep

import httpx
import pytest
from sockpq import Client
from sockpq_http.idempotency.key import fingerprint_of, word_of
from sockpq_http.idempotency.marker import QUEUE

from devcluster.cluster import LocalCluster
from sockpqd.gateway.auth import scrypt
from tests.http.door import Door
from tests.http.test_jobs import put, take
from tests.http.test_program import PROGRAM, free_port
from tests.waiting import until

SECRETS = {"shop": "of-the-shop-000000", "boss": "of-the-boss-000000"}
RIGHTS = {"shop": '["put:shop*", "get:shop*"]', "boss": '["put", "get", "queue", "item", "admin"]'}


@pytest.fixture(scope="module")
def guarded() -> Iterator[LocalCluster]:
    """A node that serves users only."""
    with LocalCluster(1) as cluster:
        (name,) = cluster.names
        users = cluster.folder / "users.toml"
        users.write_text("".join(
            f'[users.{user}]\nrights = {RIGHTS[user]}\nscrypt = "{scrypt.hashed(secret).text}"\n'
            for user, secret in SECRETS.items()
        ))
        users.chmod(0o600)
        config = cluster.config_file(name)
        config.write_text(f'{config.read_text()}\n[auth]\nusers_file = "{users}"\n')
        cluster.kill(name)
        cluster.restart(name, wait=False)
        with Client(cluster.server(name), user="boss", secret=SECRETS["boss"], timeout=120) as client:
            client.connect()
        yield cluster


@pytest.fixture(scope="module")
def entrance(guarded: LocalCluster) -> Iterator[Door]:
    with Door(guarded.server("n1")) as door:
        yield door


def test_no_warning_that_there_are_no_users(guarded: LocalCluster) -> None:
    line = [PROGRAM, "serve", "--listen", f"0.0.0.0:{free_port()}", "--servers", guarded.server("n1"), "--drain", "0"]
    with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as program:
        try:
            assert program.stderr
            told = ""
            while "listening on" not in told or "the cluster answers" not in told:
                told += program.stderr.readline()
            sleep(1)                            # a warning would follow the answer of a node on this machine
            program.send_signal(signal.SIGTERM)
            told += program.stderr.read()
        finally:
            program.kill()
    assert "no users" not in told


def as_user(door: Door, user: str, secret: str | None = None) -> httpx.Client:
    return door.client(auth=(user, SECRETS[user] if secret is None else secret))


def test_a_user_does_what_it_has_a_right_to(entrance: Door) -> None:
    with as_user(entrance, "shop") as web:
        assert put(web, "shop_orders", text="x") == {"outcome": "new"}
        assert [job["text"] for job in take(web, "shop_orders")] == ["x"]
        refused = web.post("/v1/queues/orders/jobs", json={"text": "x"})
        assert (refused.status_code, refused.json()["code"]) == (403, 403)
    word = b64encode(f"shop:{SECRETS['shop']}".encode()).decode()
    with entrance.client(headers={"Authorization": f"Bearer {word}"}) as web:
        assert put(web, "shop_orders", text="y") == {"outcome": "new"}
    assert len(entrance.service.users) >= 1


def test_without_good_credentials_nothing_is_done(entrance: Door) -> None:
    with entrance.client() as web:
        for headers in ({}, {"Authorization": "Basic x"}, {"Authorization": "Basic c2hvcDp3cm9uZw=="}):
            answer = web.post("/v1/queues/shop_orders/jobs", json={"text": "x"}, headers=headers)
            assert answer.status_code == 401, headers
            assert answer.headers["www-authenticate"].startswith("Basic ")
            assert "wrong" not in answer.text
        assert web.get("/readyz").status_code == 200
        assert web.get("/openapi.json").status_code == 200


def test_a_secret_that_is_replaced_is_good_no_more(entrance: Door, guarded: LocalCluster) -> None:
    first, second = "first-secret-0000", "second-secret-000"
    with Client(guarded.server("n1"), user="boss", secret=SECRETS["boss"], timeout=120) as boss:
        boss.set_user("guest", "put:guest*", first)
        with entrance.client(auth=("guest", first)) as web:
            assert put(web, "guest_1", text="x") == {"outcome": "new"}
        boss.set_user("guest", "put:guest*", second)
        with entrance.client(auth=("guest", second)) as web:
            assert put(web, "guest_1", text="x") == {"outcome": "new"}
        users = len(entrance.service.users)
        with entrance.client(auth=("guest", first)) as web:
            until(lambda: web.post("/v1/queues/guest_1/jobs", json={"text": "x"}).status_code == 401, "it is refused")
        until(lambda: len(entrance.service.users) == users - 1, "it has no connections any more")


def test_nobody_prevents_what_another_user_sends_with_a_key(entrance: Door, guarded: LocalCluster) -> None:
    """Each has a queue of markers, so that nobody puts the marker of another's request before it comes."""
    secrets = {"ann": "of-ann-000000000", "anna": "of-anna-00000000"}
    with Client(guarded.server("n1"), user="boss", secret=SECRETS["boss"], timeout=120) as boss:
        for user, secret in secrets.items():
            boss.set_user(user, f"put:{user}_orders*,put:{QUEUE}.{user}@*,queue:{QUEUE}.{user}@*", secret)
        body = {"jobs": [{"text": "1"}, {"text": "2"}]}
        path, key = "/v1/queues/ann_orders/jobs", "order-18"
        with entrance.client(auth=("ann", secrets["ann"])) as ann:
            request = ann.build_request("POST", path, json=body, headers={"Idempotency-Key": key})
            word = word_of(key, "ann", "POST", path)
            marker = f"{word}:{fingerprint_of('', request.headers, request.content)}"
            with entrance.client(auth=("anna", secrets["anna"])) as anna:
                for queue in (QUEUE, f"{QUEUE}.ann@"):
                    assert anna.post(f"/v1/queues/{queue}/jobs", json={"text": "", "key": marker}).status_code == 403
                assert put(anna, f"{QUEUE}.anna@", text="", key=marker)["outcome"] == "new"
            first = ann.send(request)
            assert (first.status_code, len(first.json()["results"])) == (201, 2)
            assert ann.post(path, json=body, headers={"Idempotency-Key": key}).json() == {"replayed": True}
        assert boss.total("ann_orders").jobs == 2
        assert boss.total(f"{QUEUE}.ann@").jobs == 2
