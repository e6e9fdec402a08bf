"""`manage.py sockpq_prune`: removes old marks of once(), in databases where no relay does so."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.db import DEFAULT_DB_ALIAS

from sockpq_django.models import InboxMark

DAYS = 7.0                  # as long as relays keep marks: longer than a worker may sleep
DAY_S = 86_400.0


class Command(BaseCommand):
    """Removes the marks of tasks that were done long ago."""

    help = "Removes old marks of tasks with once(), in a database that is the OUTBOX of no relay."
    requires_system_checks: Sequence[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--database", default=DEFAULT_DB_ALIAS, metavar="ALIAS", help="the database with the marks")
        parser.add_argument("--days", type=float, default=DAYS, metavar="N", help=f"keep this many days; {DAYS:g}")

    def handle(self, *args: Any, **options: Any) -> None:
        """Remove marks that are older."""
        if not options["days"] >= 1:
            raise CommandError("--days: a task may come again within a day, so keep one or more")
        before = time.time() - options["days"] * DAY_S
        removed, _ = InboxMark.objects.using(options["database"]).filter(created__lt=before).delete()
        self.stdout.write(f"{removed} {'mark was' if removed == 1 else 'marks were'} removed")
