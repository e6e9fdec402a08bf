"""The tables of the shop."""

from __future__ import annotations

from django.db import models


class Order(models.Model):
    """An order that a customer has placed."""

    name = models.CharField(max_length=100)

    class Meta:
        app_label = "shop"


class Effect(models.Model):
    """A row that a task has written."""

    name = models.CharField(max_length=100)

    class Meta:
        app_label = "shop"
