"""Certificates for the tests' servers, from an authority that lives as long as they do."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path

import trustme


@cache
def authority() -> trustme.CA:
    """Return the authority whose certificates are good."""
    return trustme.CA()


def server_tls(*names: str, days: float = 90, ca: trustme.CA | None = None) -> ssl.SSLContext:
    """Return a server's certificate for these names (loopback if there are none) that ends in `days` days."""
    ends = datetime.now(UTC) + timedelta(days=days)
    certificate = (ca or authority()).issue_cert(
        *(names or ("127.0.0.1", "localhost")), not_before=ends - timedelta(days=365), not_after=ends
    )
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    certificate.configure_cert(context)
    return context


def ca_file(folder: Path) -> str:
    """Return the file by which clients recognise the servers."""
    file = folder / "ca.crt"
    authority().cert_pem.write_to_path(str(file))
    return str(file)
