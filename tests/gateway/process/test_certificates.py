"""[tls]: errors in the files name key and reason; bad files never replace good ones."""

from __future__ import annotations

import logging
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from devcluster.authority import CLIENT, SERVER, Authority
from sockpqd.gateway.config import ConfigError, Tls
from sockpqd.gateway.process.certificates import DAY_S, Certificates

Files = dict[str, str]


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def named(cert: Path, key: Path, prefix: str = "") -> Files:
    return {f"{prefix}cert": str(cert), f"{prefix}key": str(key)}


def test_good_ones_are_taken(authority: Authority) -> None:
    files = authority.node("n1")
    Certificates(Tls(**files), "N1")
    public = named(*authority.issue("public", ["queue.example"], uses=[SERVER]), "client_")
    Certificates(Tls(**files, **public), "n1")


def garbage(authority: Authority) -> str:
    path = authority.folder / "garbage"
    path.write_text("-----BEGIN GARBAGE-----")
    path.chmod(0o600)
    return str(path)


def shared(authority: Authority) -> str:
    path = Path(authority.node("n1")["key"])
    path.chmod(0o640)
    return str(path)


WRONG: dict[str, tuple[Callable[[Authority], Files], str]] = {
    "no such file": (lambda a: {"cert": "/no/such"}, "tls.cert: /no/such: No such file or directory"),
    "no such key": (lambda a: {"key": "/no/such"}, "tls.key: /no/such: No such file or directory"),
    "no certificate": (lambda a: {"cert": garbage(a)}, "no certificate in PEM"),
    "no key": (lambda a: {"key": garbage(a)}, "no private key in PEM"),
    "no authority": (lambda a: {"ca": garbage(a)}, "tls.ca"),
    "a leaf as authority": (lambda a: {"ca": str(a.issue("leaf", ["x"])[0])}, "contains no CA certificate"),
    "expired authority": (lambda a: {"ca": str(Authority(a.folder, "old", days=-1).ca)}, "tls.ca"),
    "another's key": (lambda a: {"key": a.node("n2")["key"]}, "does not belong to"),
    "key for all to read": (lambda a: {"key": shared(a)}, "may be read or changed by others (mode 0640)"),
    "another's name": (lambda a: a.node("n2"), "is for n2 localhost, not for this node, n1"),
    "expired": (lambda a: named(*a.issue("x", ["n1"], days=(-2, -1))), "x.crt has expired"),
    "not yet": (lambda a: named(*a.issue("x", ["n1"], days=(1, 2))), "x.crt is not valid yet"),
    "server only": (lambda a: named(*a.issue("x", ["n1"], uses=[SERVER])), "extended key usage"),
    "client only": (lambda a: named(*a.issue("x", ["n1"], uses=[CLIENT])), "extended key usage"),
    "another authority": (lambda a: {"ca": str(Authority(a.folder, "other").ca)}, "is not accepted by peers"),
    "expired for clients": (
        lambda a: named(*a.issue("x", ["q"], days=(-2, -1)), "client_"), "tls.client_cert: "),
    "another's key for clients": (
        lambda a: {"client_cert": a.node("n2")["cert"], "client_key": a.node("n3")["key"]}, "tls.client_key: "),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_told_by_key_and_reason(case: str, authority: Authority) -> None:
    change, reason = WRONG[case]
    files = {**authority.node("n1"), **change(authority)}
    with pytest.raises(ConfigError) as error:
        Certificates(Tls(**files), "n1")
    assert str(error.value).startswith("tls.")
    assert reason in str(error.value)


def shown(certificates: Certificates, authority: Authority) -> bytes:
    """Return the certificate that a client sees now."""
    upstream, downstream = ssl.MemoryBIO(), ssl.MemoryBIO()
    context = ssl.create_default_context(cafile=authority.ca)
    client = context.wrap_bio(downstream, upstream, server_hostname="127.0.0.1")
    server = certificates.clients.wrap_bio(upstream, downstream, server_side=True)
    for end in (client, server, client):
        try:
            end.do_handshake()
        except ssl.SSLWantReadError:
            continue
    seen = client.getpeercert(binary_form=True)
    assert seen is not None
    return seen


def test_new_ones_are_used_after_reload_and_bad_ones_never(
    authority: Authority, caplog: pytest.LogCaptureFixture
) -> None:
    files = authority.node("n1")
    certificates = Certificates(Tls(**files), "n1")
    first, peers = shown(certificates, authority), certificates.peers
    authority.node("n1")
    assert shown(certificates, authority) == first, "not before it is said"
    listening = peers.listening
    certificates.reload()
    second = shown(certificates, authority)
    assert second != first
    assert certificates.peers is peers
    assert peers.listening is not listening
    authority.issue("n1", ["n1"], days=(-2, -1))
    listening = peers.listening
    certificates.reload()
    assert shown(certificates, authority) == second
    assert peers.listening is listening
    (error,) = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert "tls.cert: " in error
    assert "has expired. Correct that and send SIGHUP again" in error


def test_what_ends_soon_is_told(authority: Authority, caplog: pytest.LogCaptureFixture) -> None:
    Certificates(Tls(**authority.node("n1")), "n1").warn()
    assert not caplog.records
    files = named(*authority.issue("x", ["n1"], days=(-1, 20.5)))
    Certificates(Tls(**files, ca=str(authority.ca)), "n1").warn()
    (record,) = caplog.records
    assert "x.crt expires in 20." in record.getMessage()


def test_the_end_of_a_certificate_is_logged_when_it_comes(
    authority: Authority, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = time.time()
    files = named(*authority.issue("x", ["n1"], days=(-1, 0.5)))
    certificates = Certificates(Tls(**files, ca=str(authority.ca)), "n1")
    wait_s = certificates.next_warning_s()
    assert DAY_S / 2 - 600 < wait_s < DAY_S / 2 + 60
    monkeypatch.setattr(time, "time", lambda: started + wait_s + 1.0)
    certificates.warn()
    assert certificates.next_warning_s() == DAY_S
    (record,) = caplog.records
    assert record.levelno == logging.ERROR
    assert "x.crt has expired: clients and other nodes refuse new connections to this node" in record.getMessage()
