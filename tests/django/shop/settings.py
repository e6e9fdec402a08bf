"""Settings of the project. The environment names the servers, the folder of the databases and the outbox."""

from __future__ import annotations

import os

import django

FOLDER = os.environ.get("SHOP_FOLDER", "")
OUTBOX = os.environ.get("SHOP_OUTBOX") or None
BUILT_IN = django.VERSION >= (6, 0)

SECRET_KEY = "tests"
USE_TZ = True
DEBUG = False
ALLOWED_HOSTS = ["*"]
ROOT_URLCONF = "tests.django.shop.urls"
LOGGING_CONFIG = None       # logging is the test program's
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
INSTALLED_APPS = [
    "django.contrib.contenttypes", "django.contrib.auth", "django.contrib.sessions", "django.contrib.messages",
    "django.contrib.admin", "sockpq_django", "tests.django.shop", *([] if BUILT_IN else ["django_tasks"]),
]
MIDDLEWARE = [
    "django.contrib.sessions.middleware.SessionMiddleware", "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware", "django.contrib.messages.middleware.MessageMiddleware",
]
TEMPLATES = [{
    "BACKEND": "django.template.backends.django.DjangoTemplates", "APP_DIRS": True,
    "OPTIONS": {"context_processors": [
        "django.template.context_processors.request", "django.contrib.auth.context_processors.auth",
        "django.contrib.messages.context_processors.messages",
    ]},
}]
POSTGRES_PORT = os.environ.get("SHOP_POSTGRES_PORT")        # of a server on this machine
DATABASES = {
    alias: {
        "ENGINE": "django.db.backends.postgresql", "NAME": alias, "USER": "shop", "HOST": "127.0.0.1",
        "PORT": POSTGRES_PORT,
    } if POSTGRES_PORT else {
        "ENGINE": "django.db.backends.sqlite3", "NAME": os.path.join(FOLDER, f"{alias}.sqlite3"),
        "OPTIONS": {"timeout": 60},
    }
    for alias in ("default", "other")
}
QUEUES = ["default", "mail", "queue-1", "queue_1"]
TASKS = {
    "default": {
        "BACKEND": "sockpq_django.SockpqBackend", "QUEUES": QUEUES,
        "OPTIONS": {"SERVERS": os.environ.get("SHOP_SERVERS", "127.0.0.1:1"), "OUTBOX": OUTBOX, "BACKOFF": (0, 0)},
    },
}
