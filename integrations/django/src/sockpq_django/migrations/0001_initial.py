"""The tables of `sockpq_outbox`, and the permissions for dead tasks."""

from __future__ import annotations

from typing import ClassVar

from django.db import migrations, models


class Migration(migrations.Migration):
    """It has the same tables as `python -m sockpq_outbox create-tables`."""

    initial = True
    dependencies: ClassVar[list[tuple[str, str]]] = []
    operations = [
        migrations.CreateModel(
            name="OutboxRow",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("batch", models.CharField(max_length=64, null=True)),
                ("queue", models.CharField(max_length=255)),
                ("body", models.BinaryField()),
                ("options", models.TextField()),
                ("created", models.FloatField()),
                ("failed", models.FloatField(null=True)),
                ("error", models.TextField(null=True)),
            ],
            options={
                "db_table": "sockpq_outbox", "default_permissions": (),
                "indexes": [models.Index(fields=["batch", "id"], name="sockpq_outbox_batch")],
            },
        ),
        migrations.CreateModel(
            name="OutboxRelay",
            fields=[
                ("name", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("holder", models.CharField(max_length=64)),
                ("identity", models.CharField(max_length=64)),
            ],
            options={"db_table": "sockpq_outbox_relay", "default_permissions": ()},
        ),
        migrations.CreateModel(
            name="InboxMark",
            fields=[
                ("job", models.CharField(max_length=400, primary_key=True, serialize=False)),
                ("created", models.FloatField()),
            ],
            options={
                "db_table": "sockpq_inbox", "default_permissions": (),
                "indexes": [models.Index(fields=["created"], name="sockpq_inbox_created")],
            },
        ),
        migrations.CreateModel(
            name="DeadTask",
            fields=[("id", models.CharField(max_length=64, primary_key=True, serialize=False))],
            options={
                "managed": False, "default_permissions": ("view", "change", "delete"), "verbose_name": "failed task",
                "verbose_name_plural": "failed tasks",
            },
        ),
    ]
