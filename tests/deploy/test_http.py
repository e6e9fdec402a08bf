"""http.yml: the REST API as a service of a host, before a cluster with TLS and users, by the shipped role."""

from __future__ import annotations

import shutil
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import trustme
from sockpq import Client

from tests.deploy.installed import SECRET
from tests.deploy.service import Service, install_program
from tests.waiting import PATIENCE_S, until

if TYPE_CHECKING:
    from tests.deploy.installed import Installed

pytestmark = pytest.mark.timeout(1500)

NAME = "jobs.example.com"
PORT = 8443


class Api(Service):
    """sockpq-http on one host, with a certificate, and its clients."""

    def __init__(self, cluster: Installed, folder: Path) -> None:
        super().__init__(cluster, "sockpq-http")
        self._folder = folder
        self.url = f"https://{self.machine.address}:{PORT}"
        self.trust = self.renew()

    def renew(self) -> ssl.SSLContext:
        """Write a certificate of a new authority on the control node; returns the context of clients that trust it."""
        authority = trustme.CA()
        issued = authority.issue_cert(self.machine.address, NAME)
        issued.cert_chain_pems[0].write_to_path(self._folder / "cert.pem")
        issued.private_key_pem.write_to_path(self._folder / "key.pem")
        self.trust = ssl.create_default_context()
        authority.configure_trust(self.trust)
        return self.trust

    def apply(self, **more: Any) -> int:
        """Run http.yml; returns how many tasks changed something."""
        return self.play("http", "sockpq_http", {
            "sockpq_http_servers": self.cluster.servers(), "sockpq_http_ca": str(self.cluster.secrets / "ca.crt"),
            "sockpq_http_listen": f"0.0.0.0:{PORT}", "sockpq_http_hosts": [NAME],
            "sockpq_http_certificate": str(self._folder / "cert.pem"), "sockpq_http_key": str(self._folder / "key.pem"),
            "sockpq_http_options": ["--drain", "1"],
            **more,
        })

    def web(self, **options: Any) -> httpx.Client:
        """Return an HTTP client as the user of the tests."""
        defaults = {"auth": ("worker", SECRET), "verify": self.trust, "timeout": PATIENCE_S, "trust_env": False}
        return httpx.Client(base_url=self.url, **{**defaults, **options})


@pytest.fixture(scope="module")
def api(cluster: Installed, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Api]:
    made = Api(cluster, tmp_path_factory.mktemp("http"))
    install_program(made.machine, "http")
    assert made.apply() > 0
    yield made
    made.say(f"systemctl disable --now {made.unit}")
    shutil.rmtree(made.machine.root / "opt/sockpq-http")


def test_the_role_makes_an_instance_and_a_second_run_changes_nothing(api: Api) -> None:
    with api.web() as web:
        assert web.get("/readyz").json() == {"status": "ready"}
        put = web.post("/v1/queues/rest/jobs", json={"text": "hello"}, headers={"Host": NAME})
        assert (put.status_code, put.json()) == (201, {"outcome": "new"})
        (job,) = web.post("/v1/queues/rest/take").json()["jobs"]
        assert job["text"] == "hello"
        assert web.post(f"/v1/jobs/{job['id']}/done").json()["queue_done"] is True
        assert web.get("/readyz", headers={"Host": "elsewhere.example.com"}).status_code == 400
    assert api.apply() == 0
    assert (api.show("User"), api.show("ActiveState")) == ("sockpq-http", "active")
    modes = api.say("stat --format %U:%a /etc/sockpq-http/key.pem /etc/sockpq-http/environment").split()
    assert modes == ["sockpq-http:600", "root:600"]


def test_the_users_are_those_of_the_cluster(api: Api) -> None:
    for credentials in (("worker", "wrong"), None):
        with api.web(auth=credentials) as web:
            assert web.post("/v1/queues/rest/jobs", json={"text": "x"}).status_code == 401
    with api.web() as web:
        assert web.get("/v1/queues/rest/stats").status_code == 403      # the user may only put and take


def test_a_renewed_certificate_is_used_without_a_restart(api: Api) -> None:
    pid, before = api.show("MainPID"), api.trust
    api.renew()
    assert api.apply() == 2

    def trusted(context: ssl.SSLContext) -> bool:
        try:
            with api.web(verify=context) as web:
                return web.get("/healthz").status_code == 200
        except httpx.ConnectError:
            return False

    until(lambda: trusted(api.trust), "the new certificate is used")
    assert not trusted(before)
    assert api.show("MainPID") == pid


def test_a_restart_drains_and_loses_nothing(api: Api, cluster: Installed) -> None:
    """A take that waits is answered, and what is put by requests that are repeated is there once."""
    ended = threading.Event()
    failed: list[str] = []
    count = 0

    def work() -> None:
        nonlocal count
        with api.web() as web:
            while not ended.is_set():
                try:
                    answer = web.post("/v1/queues/drained/jobs", json={"text": str(count)},
                                      headers={"Idempotency-Key": f"drained-{count}"})
                except httpx.TransportError:
                    time.sleep(0.05)        # it restarts
                    continue
                if answer.status_code != 201:
                    failed.append(answer.text)
                    return
                count += 1

    with api.web() as web:
        waiting: list[httpx.Response] = []
        taking = threading.Thread(
            target=lambda: waiting.append(web.post("/v1/queues/nothing/take", json={"wait": 60})))
        worker = threading.Thread(target=work)
        taking.start()
        worker.start()
        until(lambda: count > 20, "jobs are put")
        pid = api.show("MainPID")
        assert api.apply(sockpq_http_options=["--drain", "2"]) > 0         # a change: the role restarts it
        taking.join(PATIENCE_S)
        assert [answer.json() for answer in waiting] == [{"jobs": []}]
        assert api.show("MainPID") != pid
        seen = count
        until(lambda: count > seen + 20 or failed, "jobs are put again")
        ended.set()
        worker.join(PATIENCE_S)
    assert not failed
    assert "Result=success" in api.say(f"systemctl show {api.unit}")
    with Client(cluster.servers(), **cluster.options) as client:
        texts: list[str] = []
        while jobs := client.get_many(1000, "drained", expire=3600):
            texts += [job.text for job in jobs]
    assert sorted(map(int, texts)) == [*range(count)]
