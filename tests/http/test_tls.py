"""TLS between clients and an instance: certificates that are renewed, handshakes that do not end."""

from __future__ import annotations

import socket
import ssl
from pathlib import Path

import httpx
import pytest
import trustme
from sockpq.testing import Server
from sockpq_http.server.certificate import Certificate, CertificateError

from tests.http.door import Door
from tests.http.test_connections import PATIENT_S, cut, limits, read_all
from tests.waiting import until


class Files:
    """The files of an instance, written again for each authority."""

    def __init__(self, folder: Path) -> None:
        self.certificate, self.key = folder / "cert.pem", folder / "key.pem"

    def issue(self) -> ssl.SSLContext:
        """Write a certificate of a new authority; returns the context of a client that trusts it."""
        authority = trustme.CA()
        issued = authority.issue_cert("127.0.0.1")
        issued.cert_chain_pems[0].write_to_path(self.certificate)
        self.key.touch(0o600)
        issued.private_key_pem.write_to_path(self.key)
        context = ssl.create_default_context()
        authority.configure_trust(context)
        return context

    def door(self, servers: str, **settings: object) -> Door:
        return Door(servers, str(self.certificate), str(self.key), **settings)


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def answers(door: Door, context: ssl.SSLContext) -> bool:
    with door.client(verify=context) as web:
        try:
            return web.get("/readyz").json() == {"status": "ready"}
        except httpx.ConnectError:
            return False


def test_an_instance_speaks_tls(http_node: Server, files: Files) -> None:
    context = files.issue()
    with files.door(http_node.address) as door:
        assert answers(door, context)
        with door.client() as stranger, pytest.raises(httpx.ConnectError):
            stranger.get("/readyz")


def test_a_renewed_certificate_is_used_without_a_restart(http_node: Server, files: Files) -> None:
    first = files.issue()
    patient = limits(handshake_timeout_s=PATIENT_S, idle_timeout_s=PATIENT_S)
    with files.door(http_node.address, connections=patient) as door, door.client(verify=first) as before:
        assert before.get("/healthz").status_code == 200
        files.key.write_text("no key")
        assert answers(door, first)
        second = files.issue()
        until(lambda: answers(door, second), "the new one is used")
        assert not answers(door, first)
        assert before.get("/healthz").status_code == 200        # connections go on


def test_a_handshake_that_does_not_come_ends_the_connection(http_node: Server, files: Files) -> None:
    files.issue()
    with (
        files.door(http_node.address, connections=limits(handshake_timeout_s=0.3)) as door,
        socket.create_connection(("127.0.0.1", door.port)) as connection,
    ):
        assert read_all(connection) == b""
        until(lambda: cut(door, "handshake") == 1)
        assert door.service.metrics.registry.get_sample_value("sockpq_http_connections") == 0


def test_connections_without_a_handshake_make_room(http_node: Server, files: Files) -> None:
    context = files.issue()
    few = limits(connections_max=1, handshake_timeout_s=PATIENT_S)
    with files.door(http_node.address, connections=few) as door:
        silent = [socket.create_connection(("127.0.0.1", door.port)) for _ in range(20)]
        assert answers(door, context)
        assert read_all(silent[0]) == b""
        for connection in silent:
            connection.close()


def test_files_that_are_no_certificate_are_refused(files: Files) -> None:
    files.issue()
    files.key.write_text("no key")
    with pytest.raises(CertificateError, match="no certificate with its key"):
        Certificate(str(files.certificate), str(files.key))
    with pytest.raises(CertificateError, match="No such file"):
        Certificate(str(files.certificate.with_name("none.pem")), str(files.key))


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_key_that_others_may_read_is_refused(files: Files, mode: int) -> None:
    files.issue()
    files.key.chmod(mode)
    with pytest.raises(CertificateError, match=rf"key\.pem may be read or changed by others \(mode {mode:04o}\)"):
        Certificate(str(files.certificate), str(files.key))
    files.key.chmod(0o400)
    Certificate(str(files.certificate), str(files.key))


def test_a_new_key_that_others_may_read_is_not_used(files: Files, caplog: pytest.LogCaptureFixture) -> None:
    files.issue()
    certificate = Certificate(str(files.certificate), str(files.key))
    newest = certificate._newest
    files.issue()
    files.key.chmod(0o644)
    certificate.refresh()
    assert certificate._newest is newest
    assert "may be read or changed by others" in caplog.text
    files.key.chmod(0o600)
    certificate.refresh()
    assert certificate._newest is not newest
