"""The app for pqworker: `DJANGO_SETTINGS_MODULE=shop.settings pqworker sockpq_django.worker:app --by priority`.

The variable SOCKPQ_DJANGO_BACKEND has the alias of the backend, if it is not "default".
"""

from __future__ import annotations

import os

import django
from django.apps import apps

from sockpq_django.backends import own_backend
from sockpq_django.operations.logs import log_once
from sockpq_django.operations.serving import BACKEND, worker_app

if not apps.ready:
    django.setup()
log_once()

app = worker_app(own_backend(os.environ.get(BACKEND)))
