"""The system checks of a backend's settings, for `manage.py check`. Nothing is sent."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import combinations

from django.apps import apps
from django.conf import settings as project
from django.core import checks

from sockpq_django.configuration.options import TaskOptions
from sockpq_django.tasks.names import DEAD, QUEUE_MAX, queue_of

APP = "sockpq_django"


def messages_of(alias: str, queues: Iterable[str], settings: TaskOptions) -> Iterator[checks.CheckMessage]:
    """Yield what is wrong with the settings of the backend with this alias."""
    names = sorted(queues)
    if not names:
        yield checks.Error(
            f'TASKS["{alias}"]: QUEUES is empty, which means queues of any name, and no worker can take those.',
            hint="Name the queues, as in QUEUES: [\"default\", \"mail\"].", id="sockpq_django.E001",
        )
    for name in names:
        if not 0 < len(name) <= QUEUE_MAX:
            yield checks.Error(
                f'TASKS["{alias}"]: the name of a queue has 1 to {QUEUE_MAX} characters, {name!r} has {len(name)}.',
                id="sockpq_django.E002",
            )
    for one, other in combinations(names, 2):
        first, second = (queue_of(name, settings.prefix) for name in (one, other))
        if first + DEAD == second or second + DEAD == first:
            yield checks.Error(
                f'TASKS["{alias}"]: the tasks of {one!r} and {other!r} would mix, because the failed tasks of a queue '
                f"are in the queue of its name with {DEAD}.", hint="Rename one of them.", id="sockpq_django.E003",
            )
    yield from _messages_of_outbox(alias, settings)


def _messages_of_outbox(alias: str, settings: TaskOptions) -> Iterator[checks.CheckMessage]:
    if settings.outbox is None:
        return
    if settings.outbox not in project.DATABASES:
        yield checks.Error(
            f'TASKS["{alias}"]: OUTBOX is {settings.outbox!r}, but DATABASES has {", ".join(project.DATABASES)}.',
            id="sockpq_django.E004",
        )
    if not apps.is_installed(APP):
        yield checks.Error(
            f'TASKS["{alias}"]: OUTBOX needs the tables of {APP}.',
            hint=f'Add "{APP}" to INSTALLED_APPS and run `manage.py migrate`.', id="sockpq_django.E005",
        )
