"""The tasks of the shop."""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Any

import sockpq_django
from sockpq.worker import GiveUp, Retry
from sockpq_django.api import NAME, task_backends

from tests.django.shop.models import Effect

if NAME == "django.tasks":
    from django.tasks import task
else:
    from django_tasks import task

RAN: list[Any] = []
BEGUN, GO_ON = threading.Event(), threading.Event()


class Strange(Exception):
    """An error of this project."""


@task
def add(a: int, b: int) -> int:
    return a + b


@task
async def aadd(a: int, b: int) -> int:
    return a + b


@task
def note(name: str) -> None:
    RAN.append(name)


@task
def echo(value: Any) -> Any:
    return value


@task
def repeat(text: str, times: int) -> str:
    return text * times


@task
def size(text: str) -> int:
    return len(text)


@task
def fail(text: str = "it fails") -> None:
    RAN.append(text)
    raise Strange(text)


@task
def succeed_at(attempt: int) -> str:
    """Fail until this attempt, counted from 1."""
    RAN.append("tried")
    if len(RAN) < attempt:
        raise Strange(f"attempt {len(RAN)}")
    return "succeeded"


@task
def leave() -> None:
    raise SystemExit(3)


@task
def interrupted() -> None:
    RAN.append("begun")
    if len(RAN) == 1:
        raise KeyboardInterrupt


@task
def give_up() -> None:
    raise GiveUp("for good")


@task
def retry() -> None:
    RAN.append("retried")
    raise Retry("again", delay=0)


@task
def strange() -> Any:
    return lambda: True


@task(takes_context=True)
def context(context: Any, word: str) -> list[Any]:
    found = context.task_result
    return [found.id, context.attempt, str(found.status), word]


@task(takes_context=True)
def look(context: Any) -> str:
    return str(task_backends["default"].get_result(context.task_result.id).status)


@task
def enqueue_another(name: str) -> None:
    note.enqueue(name)


@task
@sockpq_django.once
def effect(name: str) -> str:
    Effect.objects.create(name=name)
    return name


@task
@sockpq_django.once
def slow_effect(name: str) -> None:
    Effect.objects.create(name=name)
    RAN.append(name)
    BEGUN.set()
    assert GO_ON.wait(120)


@task
@sockpq_django.once
def failing_effect(name: str) -> None:
    Effect.objects.create(name=name)
    raise Strange("behind the effect")


@task
@sockpq_django.once(using="other")
def effect_elsewhere(name: str) -> None:
    Effect.objects.using("other").create(name=name)


@task
def plain_effect(name: str) -> None:
    Effect.objects.create(name=name)


@task
def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


@task
def sleep(seconds: float) -> None:
    time.sleep(seconds)
