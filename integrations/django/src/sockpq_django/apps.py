"""The app for INSTALLED_APPS: tables, admin pages, commands and checks."""

from __future__ import annotations

from django.apps import AppConfig


class SockpqDjangoConfig(AppConfig):
    """It is needed for the outbox, for once(), for the admin pages and for the commands."""

    name = "sockpq_django"
    verbose_name = "Tasks"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Register the check that asks the servers."""
        from sockpq_django.operations import reachability

        reachability.register()
