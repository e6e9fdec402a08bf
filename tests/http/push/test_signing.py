"""Signatures as Standard Webhooks has them, and secrets that are replaced."""

from __future__ import annotations

import base64
import hashlib
import hmac
import logging
from pathlib import Path

import pytest
from sockpq_http.push.signing import SecretError, Secrets, signature_headers

OLD = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
NEW = "whsec_" + base64.b64encode(bytes(range(32))).decode()


def key(secret: str) -> bytes:
    return base64.b64decode(secret.removeprefix("whsec_"))


def written(folder: Path, text: str, mode: int = 0o600) -> str:
    path = folder / "secrets"
    path.write_text(text)
    path.chmod(mode)
    return str(path)


def test_the_signature_is_that_of_the_reference_implementations() -> None:
    headers = signature_headers((key(OLD),), "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert headers == {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek", "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }


def test_each_secret_has_a_signature() -> None:
    headers = signature_headers((key(NEW), key(OLD)), "m", 1, b"\xff")
    one, two = headers["webhook-signature"].split(" ")
    for secret, signature in ((NEW, one), (OLD, two)):
        expected = hmac.new(key(secret), b"m.1.\xff", hashlib.sha256).digest()
        assert signature == f"v1,{base64.b64encode(expected).decode()}"


def test_a_file_that_changes_is_read_again(tmp_path: Path) -> None:
    now = 0.0
    secrets = Secrets(written(tmp_path, f"{OLD}\n"), lambda: now)
    assert secrets.keys() == (key(OLD),)
    written(tmp_path, f"{NEW}\n{OLD}\n")
    assert secrets.keys() == (key(OLD),)            # it is not looked at for each request
    now = 2.0
    assert secrets.keys() == (key(NEW), key(OLD))


def test_a_file_that_becomes_bad_leaves_the_secrets_in_use(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    now = 0.0
    secrets = Secrets(written(tmp_path, OLD), lambda: now)
    for bad in ("", "nonsense", "whsec_c2hvcnQ="):
        now += 2.0
        written(tmp_path, bad)
        with caplog.at_level(logging.WARNING):
            assert secrets.keys() == (key(OLD),)
        assert "the secrets read before stay in use" in caplog.text
        assert not bad or bad not in caplog.text
        caplog.clear()
    now += 2.0
    (tmp_path / "secrets").unlink()
    assert secrets.keys() == (key(OLD),)
    written(tmp_path, NEW)
    now += 2.0
    assert secrets.keys() == (key(NEW),)


@pytest.mark.parametrize(("text", "reason"), [
    ("", "1 to 10 secrets"), ("whsec_" + "A" * 20, "line 1 is not"), (f"{OLD}\n{OLD[6:]}", "line 2 is not"),
    ("whsec_%%%", "line 1 is not"), ("whsec_" + base64.b64encode(bytes(65)).decode(), "line 1 is not"),
    ("\n".join([OLD] * 11), "1 to 10 secrets"),
])
def test_what_is_no_secret_is_refused_without_showing_it(tmp_path: Path, text: str, reason: str) -> None:
    with pytest.raises(SecretError, match=reason) as caught:
        Secrets(written(tmp_path, text))
    assert "A" * 20 not in str(caught.value)
    assert OLD[6:] not in str(caught.value)


def test_a_file_that_everybody_may_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SecretError, match="chmod o-rw"):
        Secrets(written(tmp_path, OLD, 0o644))
