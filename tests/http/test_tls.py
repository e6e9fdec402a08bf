"""TLS between clients and an instance."""

from __future__ import annotations

import ssl
from pathlib import Path

import httpx
import pytest
import trustme
from sockpq.testing import Server

from tests.http.door import Door


def test_an_instance_speaks_tls(http_node: Server, tmp_path: Path) -> None:
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    certificate, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    issued.cert_chain_pems[0].write_to_path(certificate)
    issued.private_key_pem.write_to_path(key)
    context = ssl.create_default_context()
    authority.configure_trust(context)
    with Door(http_node.address, str(certificate), str(key)) as door:
        with door.client(verify=context) as web:
            assert web.get("/readyz").json() == {"status": "ready"}
        with door.client() as stranger, pytest.raises(httpx.ConnectError):
            stranger.get("/readyz")
