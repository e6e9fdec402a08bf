"""The OPTIONS of the backend, and the checks of its settings."""

from __future__ import annotations

from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from sockpq_django.configuration.checking import messages_of
from sockpq_django.configuration.options import TaskOptions, task_options


def test_defaults() -> None:
    assert task_options({}) == TaskOptions({}, "", 86_400.0, 1, (2.0, 600.0), None)


def test_all_options() -> None:
    found = task_options({
        "SERVERS": ["db1:11361", "db2:11361"], "USER": "shop", "SECRET": "s3cret", "TLS": True, "TIMEOUT": 5,
        "PREFIX": "shop.", "RETENTION": 60, "TRIES": 3, "BACKOFF": [1, 2.5], "OUTBOX": "default",
    })
    assert found == TaskOptions(
        {"servers": "db1:11361,db2:11361", "user": "shop", "secret": "s3cret", "tls": True, "timeout": 5},
        "shop.", 60.0, 3, (1.0, 2.5), "default",
    )


@pytest.mark.parametrize(("given", "word"), [
    ({"SERVER": "x"}, "no option SERVER"), ({"SERVERS": 5}, "SERVERS"), ({"SERVERS": [5]}, "SERVERS"),
    ({"SERVERS": "no port"}, "no port"), ({"USER": "u"}, "secret"), ({"TIMEOUT": -1}, "timeout"),
    ({"PREFIX": "a b"}, "PREFIX"), ({"PREFIX": "-a"}, "PREFIX"), ({"PREFIX": 5}, "PREFIX"),
    ({"PREFIX": "x" * 101}, "PREFIX"),
    ({"RETENTION": -1}, "RETENTION"), ({"RETENTION": "1"}, "RETENTION"), ({"RETENTION": True}, "RETENTION"),
    ({"RETENTION": float("inf")}, "RETENTION"), ({"RETENTION": float("nan")}, "RETENTION"),
    ({"TRIES": 0}, "TRIES"), ({"TRIES": 1.5}, "TRIES"), ({"TRIES": True}, "TRIES"), ({"TRIES": 1001}, "TRIES"),
    ({"BACKOFF": 5}, "BACKOFF"), ({"BACKOFF": (5,)}, "BACKOFF"), ({"BACKOFF": (5, 2)}, "BACKOFF"),
    ({"BACKOFF": (-1, 2)}, "BACKOFF"), ({"BACKOFF": ("1", 2)}, "BACKOFF"), ({"BACKOFF": (1, float("inf"))}, "BACKOFF"),
    ({"OUTBOX": True}, "OUTBOX"),
])
def test_what_is_wrong_is_refused_and_named(given: dict[str, Any], word: str) -> None:
    with pytest.raises(ImproperlyConfigured, match=word):
        task_options(given)


def test_no_secret_is_in_an_error() -> None:
    with pytest.raises(ImproperlyConfigured) as caught:
        task_options({"SECRET": "s3cret", "SERVERS": "no port"})
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize(("queues", "options", "found"), [
    (["default"], {}, []), ([], {}, ["E001"]), (["x" * 32], {}, ["E002"]), ([""], {}, ["E002"]),
    (["mail", "mail_dead"], {}, ["E003"]), (["mail_dead", "mail"], {"PREFIX": "shop."}, ["E003"]),
    (["default"], {"OUTBOX": "default"}, []), (["default"], {"OUTBOX": "nowhere"}, ["E004"]),
])
def test_checks_of_the_settings(queues: list[str], options: dict[str, Any], found: list[str]) -> None:
    messages = list(messages_of("default", queues, task_options(options)))
    assert [message.id for message in messages] == [f"sockpq_django.{one}" for one in found]
