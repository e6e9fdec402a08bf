"""`manage.py sockpq_relay`: moves the committed rows of a backend's outbox into the cluster."""

from __future__ import annotations

import logging
import signal
from collections.abc import Sequence
from types import FrameType
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import BaseCommand, CommandError, CommandParser
from sockpq.worker.program.log_handler import log_handler

from sockpq_django.backends import own_backend
from sockpq_django.operations.logs import log_once
from sockpq_django.operations.relaying import relay_of


class Command(BaseCommand):
    """Runs the relay of sockpq_outbox with the settings of this project."""

    help = "Puts the tasks whose rows are committed into the cluster. Several may run: one works, the others take over."
    requires_system_checks: Sequence[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        """Declare the options."""
        parser.add_argument("--backend", metavar="ALIAS", help='the backend in TASKS; by default "default"')
        parser.add_argument("--log-format", choices=("auto", "json", "text"), default="text",
                            help="json, text (default), or auto: text on a terminal; auto is what pqworker does")

    def handle(self, *args: Any, **options: Any) -> None:
        """Relay until SIGTERM or SIGINT."""
        try:
            relay = relay_of(own_backend(options["backend"]))
        except ImproperlyConfigured as error:
            raise CommandError(str(error)) from error

        def stop(number: int, frame: FrameType | None) -> None:
            relay.stop()

        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, stop)
        # Of the root logger, to which the relay's lines go: a project that configures it in LOGGING has the last word.
        logging.basicConfig(level=logging.INFO, handlers=[log_handler(options["log_format"])])
        log_once()
        relay.run()
