"""The configuration: each option, and the error message for each mistake."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from sockpq_http.push.configuration import ConfigError, load, read

GOOD = """
[targets.shop]
queues = ["orders"]
url = "https://shop.example.com/hooks"
"""


def test_little_is_needed() -> None:
    config = read(tomllib.loads(GOOD))
    target = config.targets["shop"]
    assert (target.queues, target.host, target.concurrency, target.bury) == (("orders",), "shop.example.com", 10, ())
    assert config.push.listen is None


@pytest.mark.parametrize(("text", "sentence"), [
    ("", r"targets: there is none; \[targets.NAME\] says"),
    ("[target.shop]", r"target: unknown section; there are \[cluster\], \[push\] and \[targets.NAME\]"),
    ("[targets.a]\nqueues = ['q']", "targets.a.url: this key is required"),
    (GOOD + "timeout = 3", "targets.shop.timeout: unknown key"),
    (GOOD + "timeout_s = '3'", "targets.shop.timeout_s: expected float, got str"),
    (GOOD + "concurrency = 0", "targets.shop.concurrency: expected int >= 1"),
    (GOOD + "timeout_s = 0", "targets.shop.timeout_s: expected float > 0"),
    (GOOD + "timeout_s = nan", "targets.shop.timeout_s: "),
    (GOOD + "timeout_s = 2", "targets.shop.connect_timeout_s: is a part of timeout_s"),
    (GOOD + "bury = [500]", "targets.shop.bury"),
    (GOOD + "bury = ['5xx']", r'targets.shop.bury: "5xx" is neither a status from 400 to 499 nor "4xx"'),
    (GOOD + "allow = ['10.0.0.1/8']", "targets.shop.allow: 10.0.0.1/8 has host bits set"),
    (GOOD + "allow = ['shop']", "targets.shop.allow: 'shop' does not appear to be an IPv4 or IPv6 network"),
    (GOOD + "headers = {'a b' = 'c'}", "targets.shop.headers.a b: cannot be a header of HTTP"),
    (GOOD + "headers = {'a' = \"c\\r\\nd: e\"}", "targets.shop.headers.a: cannot be a header of HTTP"),
    (GOOD + "headers = {'Host' = 'x'}", "targets.shop.headers.Host: the program sets this header itself"),
    (GOOD + "headers = {'webhook-id' = 'x'}", "targets.shop.headers.webhook-id: the program sets this header itself"),
    (GOOD + "secret_file = '/no/such/file'", "targets.shop.secret_file: there is no file /no/such/file"),
    (GOOD + "ca_file = '/no/such/file'", "targets.shop.ca_file: there is no file /no/such/file"),
    (GOOD + '[targets.b]\nqueues = ["orders"]\nurl = "https://b.example.com"',
     "targets.b.queues: orders is a queue of target shop too"),
    ('[targets.b]\nqueues = ["q", "q"]\nurl = "https://b.example.com"',
     "targets.b.queues: q is a queue of this target twice"),
    ('[targets.b]\nqueues = []\nurl = "https://b.example.com"', "targets.b.queues: expected array of length >= 1"),
    ('[targets."b c"]\nqueues = ["q"]\nurl = "https://b.example.com"', "targets.b c: a name is 1 to 64 of"),
    (GOOD + "[push]\nlisten = '9465'", "push.listen: '9465' is not HOST:PORT"),
    (GOOD + "[push]\nproxy = 'socks5://x'", "push.proxy: 'socks5://x' is not an address that begins with http://"),
    (GOOD + "[push]\nttl_s = 1", "push.ttl_s: expected float >= 5"),
    (GOOD + "[cluster]\nuser = 'push'", "cluster: user and secret_file go together"),
    (GOOD + "[cluster]\nca_file = 'x'", "cluster.servers: ca_file and user need it"),
    (GOOD + "content_type = \"a\\u0000\"", "targets.shop.content_type: must not contain a NUL character"),
    ("targets = 3", "targets: there is none"),
    ("push = 3\n" + GOOD, "push: expected object, got int"),
])
def test_what_is_wrong_is_one_sentence_with_the_key(text: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=f"^{sentence}"):
        read(tomllib.loads(text))


@pytest.mark.parametrize(("url", "sentence"), [
    ("ftp://a.example.com", "is not an address that begins with http:// or https://"),
    ("https://", "is not an address"), ("shop.example.com", "is not an address"),
    ("https://a.example.com:99999/", "is not an address"), ("https://a.example.com:0/", "is not an address"),
    ("https://a b/", "is not an address"), ("https://[::1/", "is not an address"),
    ("https://ann:secret@a.example.com/", "a user and password do not belong"),
    ("https://a.example.com/#x", "a fragment"),
    ("http://127.0.0.1:8000/", "127.0.0.1 is a loopback address; `allow` names networks"),
    ("http://[::ffff:10.0.0.1]/", "10.0.0.1 is a private network"),
    ("http://169.254.169.254/latest/meta-data/", "is a link-local address, where clouds have their metadata"),
])
def test_an_address_that_cannot_be_used_is_refused(url: str, sentence: str) -> None:
    with pytest.raises(ConfigError, match=r"^targets.a.url: ") as caught:
        read({"targets": {"a": {"queues": ["q"], "url": url}}})
    assert sentence in str(caught.value)
    assert "secret" not in str(caught.value)


def test_an_address_that_is_allowed_may_be_named() -> None:
    read({"targets": {"a": {"queues": ["q"], "url": "http://127.0.0.1:8000/", "allow": ["127.0.0.1"]}}})


def test_files_of_certificates_and_secrets_are_read(tmp_path: Path) -> None:
    bad = tmp_path / "file"
    bad.write_text("no such thing")
    bad.chmod(0o600)
    for key, sentence in (("ca_file", "has no certificates"), ("secret_file", "line 1 is not")):
        with pytest.raises(ConfigError, match=rf"^targets\.shop\.{key}: .*{sentence}"):
            read(tomllib.loads(f"{GOOD}{key} = '{bad}'"))


def test_a_file_that_is_missing_or_no_toml_is_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load(tmp_path / "none.toml")
    path = tmp_path / "push.toml"
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"push\.toml"):
        load(path)
    path.write_text("[push")
    with pytest.raises(ConfigError, match=r"push\.toml"):
        load(path)
    path.write_text(GOOD)
    assert load(path).targets.keys() == {"shop"}
