"""The OPTIONS of the backend in the setting TASKS, checked."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from django.core.exceptions import ImproperlyConfigured
from sockpq import BadArguments
from sockpq.names import escape_name

from sockpq_django.configuration.clients import shared_client

RETENTION_S = 86_400.0
TRIES = 1
BACKOFF_S = (2.0, 600.0)
TRIES_MAX = 1000
INFINITY = float("inf")
PREFIX_MAX = 100            # with an escaped name of a queue it must be a name that the server accepts


class TaskOptions(NamedTuple):
    """The values of OPTIONS. Times in seconds.

    `client`: the arguments of sockpq.Client. `prefix`: comes before the names of all queues. `retention`: how long
    results are kept, 0 for none. `tries`: how often a task is tried before it has failed; `backoff`: the pause after
    the first failure, doubled by each, and the longest. `outbox`: the alias of the database that has the outbox.
    """

    client: dict[str, Any]
    prefix: str = ""
    retention: float = RETENTION_S
    tries: int = TRIES
    backoff: tuple[float, float] = BACKOFF_S
    outbox: str | None = None


CLIENT = {"SERVERS": "servers", "USER": "user", "SECRET": "secret", "SECRET_FILE": "secret_file", "TLS": "tls",
          "TIMEOUT": "timeout"}
OTHERS = ("PREFIX", "RETENTION", "TRIES", "BACKOFF", "OUTBOX")


def task_options(given: Mapping[str, Any]) -> TaskOptions:
    """Return the OPTIONS of a backend in TASKS. Raises ImproperlyConfigured for unknown and impossible ones."""
    unknown = sorted(given.keys() - CLIENT.keys() - set(OTHERS))
    if unknown:
        raise ImproperlyConfigured(
            f"TASKS: there is no option {', '.join(unknown)}; there are {', '.join((*CLIENT, *OTHERS))}"
        )
    client = {name: given[option] for option, name in CLIENT.items() if given.get(option) is not None}
    return TaskOptions(
        _client(client), _prefix(given.get("PREFIX", "")), _seconds(given, "RETENTION", RETENTION_S),
        _tries(given.get("TRIES", TRIES)), _backoff(given.get("BACKOFF", BACKOFF_S)), _outbox(given.get("OUTBOX")),
    )


def _client(arguments: dict[str, Any]) -> dict[str, Any]:
    servers = arguments.get("servers")
    if servers is not None and not isinstance(servers, str):
        if not isinstance(servers, Iterable) or not all(isinstance(one, str) for one in servers):
            raise ImproperlyConfigured('TASKS: SERVERS is "host:port", with commas between several, or a list of these')
        arguments["servers"] = ",".join(servers)
    try:
        shared_client(arguments)            # it sends nothing yet
    except (BadArguments, TypeError) as error:
        raise ImproperlyConfigured(f"TASKS: {error}") from error
    return arguments


def _prefix(value: Any) -> str:
    if not isinstance(value, str) or len(value) > PREFIX_MAX or (value and escape_name(value) != value):
        raise ImproperlyConfigured(
            f"TASKS: PREFIX is up to {PREFIX_MAX} of A-Z a-z 0-9 _ . @ -, the first one no @ or -; not {value!r}"
        )
    return value


def _seconds(given: Mapping[str, Any], option: str, default: float) -> float:
    value = given.get(option, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < INFINITY:
        raise ImproperlyConfigured(f"TASKS: {option} is a number of seconds, not {value!r}")
    return float(value)


def _tries(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= TRIES_MAX:
        raise ImproperlyConfigured(f"TASKS: TRIES is a number from 1 to {TRIES_MAX}, not {value!r}")
    return value


def _backoff(value: Any) -> tuple[float, float]:
    pair = tuple(value) if isinstance(value, tuple | list) else ()
    numbers = len(pair) == 2 and all(isinstance(one, int | float) for one in pair)
    if not numbers or not 0 <= pair[0] <= pair[1] < INFINITY:
        raise ImproperlyConfigured(
            f"TASKS: BACKOFF is a pair of seconds, the first pause and the longest, not {value!r}"
        )
    return float(pair[0]), float(pair[1])


def _outbox(value: Any) -> str | None:
    if value is not None and not isinstance(value, str):
        raise ImproperlyConfigured(f"TASKS: OUTBOX is the alias of a database, or None, not {value!r}")
    return value
