"""The API of Django's tasks: `django.tasks` of Django 6, or its backport `django_tasks` for earlier versions.

With Django 6 the backport is used only if `django_tasks` is in INSTALLED_APPS.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import django
from django.conf import settings

BUILT_IN = "django.tasks"
BACKPORT = "django_tasks"


def api_name() -> str:
    """Return the package that has the API: "django.tasks" or "django_tasks"."""
    built_in = django.VERSION >= (6, 0)
    return BACKPORT if not built_in or BACKPORT in settings.INSTALLED_APPS else BUILT_IN


NAME = api_name()
_base: Any = import_module(f"{NAME}.base")
_exceptions: Any = import_module(f"{NAME}.exceptions")
_json: Any = import_module("django.utils.json" if NAME == BUILT_IN else f"{NAME}.utils")

task_backends: Any = import_module(NAME).task_backends
BaseTaskBackend: Any = import_module(f"{NAME}.backends.base").BaseTaskBackend
Task: Any = _base.Task
TaskContext: Any = _base.TaskContext
TaskError: Any = _base.TaskError
TaskResult: Any = _base.TaskResult
TaskResultStatus: Any = _base.TaskResultStatus
# Django 6 has renamed it.
InvalidTask: Any = getattr(_exceptions, "InvalidTask", None) or _exceptions.InvalidTaskError
TaskResultDoesNotExist: Any = _exceptions.TaskResultDoesNotExist
normalize_json: Any = _json.normalize_json
signals: Any = import_module(f"{NAME}.signals")
