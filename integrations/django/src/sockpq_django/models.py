"""The tables of the outbox and the inbox, as `sockpq_outbox` has them, and a name for the admin pages of dead tasks."""

from __future__ import annotations

from django.db import models


class OutboxRow(models.Model):
    """A job that a transaction has written and that the relay will put. `failed`: the Unix time of its refusal."""

    id = models.BigAutoField(primary_key=True)
    batch = models.CharField(max_length=64, null=True)
    queue = models.CharField(max_length=255)
    body = models.BinaryField()
    options = models.TextField()
    created = models.FloatField()
    failed = models.FloatField(null=True)
    error = models.TextField(null=True)

    class Meta:
        db_table = "sockpq_outbox"
        default_permissions = ()
        indexes = [models.Index(fields=["batch", "id"], name="sockpq_outbox_batch")]


class OutboxRelay(models.Model):
    """The relay that holds an outbox now."""

    name = models.CharField(max_length=255, primary_key=True)
    holder = models.CharField(max_length=64)
    identity = models.CharField(max_length=64)

    class Meta:
        db_table = "sockpq_outbox_relay"
        default_permissions = ()


class InboxMark(models.Model):
    """A task of once() whose effect is in this database. `created`: Unix time; the relay removes old ones."""

    job = models.CharField(max_length=400, primary_key=True)
    created = models.FloatField()

    class Meta:
        db_table = "sockpq_inbox"
        default_permissions = ()
        indexes = [models.Index(fields=["created"], name="sockpq_inbox_created")]


class DeadTask(models.Model):
    """A task that has failed for good, for the admin pages and their permissions. It is kept in the cluster only."""

    id = models.CharField(max_length=64, primary_key=True)

    class Meta:
        managed = False
        default_permissions = ("view", "change", "delete")
        verbose_name = "failed task"
        verbose_name_plural = "failed tasks"

    def __str__(self) -> str:
        return str(self.id)
