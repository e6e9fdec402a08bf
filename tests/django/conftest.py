"""Django, configured once for all tests of this folder, with databases in a folder; and a real node for those that ask.

With Django 6 this is a plugin of its own, without the conftest.py above it (tests/django/django_six.py).
"""

from __future__ import annotations

import atexit
import importlib
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from typing import Any

import django
import pytest
from django.conf import settings
from sockpq import Client
from sockpq.testing import Server

if not settings.configured:
    os.environ["SHOP_FOLDER"] = tempfile.mkdtemp(prefix="sockpq-django-")
    atexit.register(shutil.rmtree, os.environ["SHOP_FOLDER"], ignore_errors=True)
    project = importlib.import_module("tests.django.shop.settings")
    # Without DJANGO_SETTINGS_MODULE, which would tell other tests of this process that they are for Django.
    settings.configure(**{name: getattr(project, name) for name in dir(project) if name.isupper()})
    django.setup()

from django.core.management import call_command
from django.db import connections
from django.test.signals import setting_changed
from sockpq_django.api import task_backends
from sockpq_django.backend import SockpqBackend
from sockpq_django.models import InboxMark, OutboxRow
from sockpq_django.testing import clear_tasks, in_memory

from tests.django.shop import tasks
from tests.django.shop.models import Effect, Order

ALL = os.environ.get("FRAMEWORKS") == "1"       # `make test-frameworks`
Configure = Callable[..., SockpqBackend]


def tasks_setting(**options: Any) -> dict[str, Any]:
    """Return the setting TASKS of the project with more options."""
    (one,) = settings.TASKS.values()
    return {"default": {**one, "OPTIONS": {**one["OPTIONS"], **options}}}


@pytest.fixture(scope="session")
def databases() -> Iterator[None]:
    """The tables, in both databases."""
    for alias in settings.DATABASES:
        call_command("migrate", database=alias, run_syncdb=True, verbosity=0, interactive=False)
    yield
    connections.close_all()


@pytest.fixture
def tables(databases: None) -> Iterator[None]:
    """Empty the tables in all databases."""
    for alias in settings.DATABASES:
        for model in (Order, Effect, InboxMark, OutboxRow):
            model.objects.using(alias).all().delete()
    yield
    for alias in settings.DATABASES:
        connections[alias].rollback() if connections[alias].in_atomic_block else None


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    """Forget what ran before."""
    tasks.RAN.clear()
    clear_tasks()


@pytest.fixture
def memory() -> Iterator[Configure]:
    """Make the backend one in memory, with these options."""
    with _configured(lambda options: in_memory(tasks_setting(**options))) as configure:
        yield configure


@pytest.fixture(scope="session")
def node() -> Iterator[Server]:
    """A real server of one node, with its own data."""
    with Server() as server:
        yield server


@pytest.fixture
def server(node: Server) -> Server:
    """A server without jobs and settings."""
    node.empty()
    return node


@pytest.fixture
def cluster(server: Server) -> Iterator[Configure]:
    """Make the backend one of the node, with these options."""
    with in_cluster(server.address) as configure:
        yield configure


@pytest.fixture
def backend(cluster: Configure) -> SockpqBackend:
    """The backend of the node, with the options of the project."""
    return cluster()


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    """A client of the node."""
    with Client(server.address) as made:
        yield made


def in_cluster(server: str) -> _configured:
    """Return a block within which the backend is one with this server."""
    return _configured(lambda options: tasks_setting(**{"SERVERS": server, **options}))


class _configured:      # noqa: N801  (a block of settings)
    """The setting TASKS, changed as often as wanted, and put back at the end."""

    def __init__(self, setting: Callable[[dict[str, Any]], dict[str, Any]]) -> None:
        self._setting = setting
        self._before = settings.TASKS

    def __enter__(self) -> Configure:
        return self._configure

    def __exit__(self, *error: object) -> None:
        _set_tasks(self._before)

    def _configure(self, **options: Any) -> SockpqBackend:
        _set_tasks(self._setting(options))
        backend: SockpqBackend = task_backends["default"]
        return backend


def _set_tasks(value: dict[str, Any]) -> None:
    settings.TASKS = value
    setting_changed.send(sender=type(settings), setting="TASKS", value=value, enter=True)
