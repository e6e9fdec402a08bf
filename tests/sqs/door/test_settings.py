"""The settings file and its errors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sockpq_sqs.settings import SettingsError, address, load, read


def test_without_a_file_it_listens_on_loopback() -> None:
    settings = load(None, {}, {})
    assert settings.http.listen == "127.0.0.1:9324"
    assert (settings.users.file, settings.users.in_cluster, settings.sqs.once) == (None, True, False)


def test_the_environment_overrides_the_file_and_options_override_both(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    path.write_text('[http]\nlisten = "127.0.0.1:1"\nbase = "/sqs"\n[limits]\nmemory_mib = 5\n')
    settings = load(
        path, {"SOCKPQ_SQS_HTTP_LISTEN": "127.0.0.1:2", "SOCKPQ_SQS_CLUSTER_SERVERS": "a:1, b:2", "OTHER": "x",
               "SOCKPQ_SQS_LIMITS_CONNECTIONS_MAX": "7", "SOCKPQ_SQS_SQS_ONCE": "true"},
        {"http": {"listen": "127.0.0.1:3"}})
    assert settings.http.listen == "127.0.0.1:3"
    assert settings.http.base == "/sqs"
    assert settings.cluster.servers == ["a:1", "b:2"]
    assert (settings.limits.connections_max, settings.limits.memory_mib) == (7, 5)
    assert settings.sqs.once


@pytest.mark.parametrize(
    ("document", "reason"),
    [
        ({"htp": {}}, "htp: unknown key"),
        ({"http": {"port": 5}}, "http.port: unknown key"),
        ({"http": {"listen": 5}}, "http.listen: expected str, got int"),
        ({"http": {"listen": "9324"}}, "http.listen: '9324' must be HOST:PORT"),
        ({"http": {"listen": "a:99999"}}, "http.listen: 'a:99999' must be HOST:PORT"),
        ({"http": {"listen": "0.0.0.0:9324"}}, "can be reached from other machines"),
        ({"http": {"listen": ":9324"}}, "can be reached from other machines"),
        ({"http": {"base": "sqs/"}}, "http.base: 'sqs/' must be a path"),
        ({"http": {"url": "queues.example.com"}}, "http.url: 'queues.example.com' must be like"),
        ({"http": {"metrics_from": ["here"]}}, "http.metrics_from: 'here' does not appear to be an IPv4"),
        ({"tls": {"cert": "c"}}, "tls: cert and key belong together"),
        ({"limits": {"connections_max": 0}}, "limits.connections_max: must be 1 or more"),
        ({"limits": {"hello_timeout_s": -1}}, "limits.hello_timeout_s: must not be negative"),
        ({"sqs": {"policies": "enforce"}}, "sqs.policies: invalid enum value 'enforce'"),
        ({"sqs": {"account": "1"}}, "sqs.account: '1' must be an account of 12 digits"),
        ({"sqs": {"accounts": {"1": ""}}}, "sqs.accounts: '1' must be an account of 12 digits"),
        ({"sqs": {"accounts": {"111122223333": "a b"}}}, "sqs.accounts.111122223333: 'a b' must be up to 32 of"),
        ({"log": {"level": "loud"}}, "log.level: invalid enum value 'loud'"),
    ],
)
def test_settings_that_are_not_good_are_refused(document: dict[str, Any], reason: str) -> None:
    with pytest.raises(SettingsError) as caught:
        read(document)
    assert reason in str(caught.value)


@pytest.mark.parametrize("variable", ["SOCKPQ_SQS_HTTP_PORT", "SOCKPQ_SQS_NOTHING", "SOCKPQ_SQS_X_Y"])
def test_a_variable_of_the_environment_that_is_no_setting_is_refused(variable: str) -> None:
    with pytest.raises(SettingsError, match=f"{variable} .environment.: there is no setting"):
        load(None, {variable: "1"}, {})


def test_files_that_cannot_be_read_are_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="No such file"):
        load(tmp_path / "none.toml", {}, {})
    path = tmp_path / "s.toml"
    path.write_text("[http")
    with pytest.raises(SettingsError, match=r"s\.toml: "):
        load(path, {}, {})


def test_other_machines_may_reach_it_with_users_or_if_somebody_insists() -> None:
    assert read({"http": {"listen": "0.0.0.0:1", "insecure": True}}).http.insecure
    assert read({"http": {"listen": "0.0.0.0:1"}, "users": {"file": "u"}}).users.file == "u"
    assert read({"http": {"listen": "[::1]:1"}})
    assert address("[::1]:7") == ("::1", 7)
    assert address(":7") == ("", 7)
