"""Answers of one of several clusters, as the program gets them: with tags in the ids, and the names of clusters."""

from __future__ import annotations

from typing import Any, TypeVar

from sockpq._protocol.commands.records import Page
from sockpq._protocol.job_ids import TAG_SHIFT
from sockpq.model import (
    FoundJob,
    Grant,
    Handed,
    Meta,
    PeekedJob,
    QueueTotals,
    RunningJob,
    Stored,
    Totals,
)

T = TypeVar("T", int, int | None)


def labelled(value: Any, cluster: str, tag: int) -> Any:
    """Return the answer of the cluster with this name and tag in the form for programs."""
    if isinstance(value, list):
        return [labelled(one, cluster, tag) for one in value]
    if isinstance(value, QueueTotals):
        return value._replace(cluster=cluster)
    if isinstance(value, Page):
        return value._replace(jobs=labelled(value.jobs, cluster, tag))
    if isinstance(value, FoundJob):
        return value._replace(id=_tagged(value.id, tag), meta=_meta(value.meta, tag), cluster=cluster)
    if not tag:
        return value
    if isinstance(value, Handed):
        return value._replace(id=_tagged(value.id, tag), meta=_meta(value.meta, tag) if value.meta else None)
    if isinstance(value, Stored):
        return value._replace(number=_tagged(value.number, tag))
    if isinstance(value, PeekedJob):
        return value._replace(id=_tagged(value.id, tag), number=_tagged(value.number, tag))
    if isinstance(value, RunningJob):
        return value._replace(id=_tagged(value.id, tag))
    if isinstance(value, Grant):
        return value._replace(ticket=_tagged(value.ticket, tag))
    return value


def together(values: list[Any]) -> Any:
    """Return the answers of several clusters to the same command as one: counts are added, lists joined."""
    first = values[0]
    if isinstance(first, Totals):
        return Totals(*map(sum, zip(*values, strict=True)))
    if isinstance(first, int) and not isinstance(first, bool):
        return sum(values)
    if isinstance(first, list):
        return [one for value in values for one in value]
    return first


def _tagged(number: T, tag: int) -> T:
    return number if number is None else number | tag << TAG_SHIFT


def _meta(meta: Meta, tag: int) -> Meta:
    return meta._replace(number=_tagged(meta.number, tag))
