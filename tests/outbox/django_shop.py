"""A program with Django's ORM, for test_django.py: `python -m tests.outbox.django_shop FILE SERVER`."""

from __future__ import annotations

import sys

import django
from django.conf import settings

settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": sys.argv[1]}})
django.setup()

from django.db import connection, transaction  # noqa: E402  (after the settings)
from sockpq import Client  # noqa: E402
from sockpq_outbox import Relay, inbox, outbox  # noqa: E402

from tests.waiting import until  # noqa: E402


def effects() -> int:
    """Return how many effects there are."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT COUNT(*) FROM effects")
        found: int = cursor.fetchone()[0]
        return found


def main() -> None:
    """Put, relay, and work once."""
    with transaction.atomic():
        outbox.put("default", "mail", "yes")
        try:
            with transaction.atomic():
                outbox.put("default", "mail", "no")
                raise LookupError
        except LookupError:
            pass
    with Client(sys.argv[2]) as client:
        with Relay("default", sys.argv[2], poll=0.02):
            until(lambda: client.total("mail").jobs == 1)
        job = client.get("mail", expire=60, meta=True, headers=True)
        assert job is not None
        assert job.text == "yes"
        try:
            with inbox.once("default", job), connection.cursor() as cursor:
                cursor.execute("INSERT INTO effects VALUES ('a')")
                raise LookupError
        except LookupError:
            assert effects() == 0
        for expected in (True, False):
            with inbox.once("default", job, identity="7") as first, connection.cursor() as cursor:
                assert first is expected
                if first:
                    cursor.execute("INSERT INTO effects VALUES ('a')")
        assert effects() == 1
        assert client.total("mail").jobs == 0
    print("fine")


main()
