"""Converts answers of one of several clusters for the program: adds tags to the ids, and names of clusters."""

from __future__ import annotations

from collections.abc import Callable
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
    """Return the answer of the cluster with this name ("": not in the map) and tag in the form for programs."""
    form = _FORMS.get(type(value))
    return value if form is None else form(value, cluster, tag)


def together(values: list[Any]) -> Any:
    """Merge the answers of several clusters to the same command: counts are added, lists joined."""
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


def _stored(value: Stored, cluster: str, tag: int) -> Stored:
    return value if value.number is None else value._replace(number=_tagged(value.number, tag))


# The types of answers with ids in them, or with a field for the name of a cluster.
_FORMS: dict[type, Callable[[Any, str, int], Any]] = {
    list: lambda values, cluster, tag: [labelled(value, cluster, tag) for value in values],
    Page: lambda page, cluster, tag: page._replace(jobs=labelled(page.jobs, cluster, tag)),
    QueueTotals: lambda value, cluster, _: value._replace(cluster=cluster or None),
    FoundJob: lambda value, cluster, tag: value._replace(
        id=_tagged(value.id, tag), meta=_meta(value.meta, tag), cluster=cluster or None),
    Handed: lambda value, _, tag: value._replace(
        id=_tagged(value.id, tag), meta=_meta(value.meta, tag) if value.meta else None) if tag else value,
    Stored: _stored,
    PeekedJob: lambda value, _, tag: value._replace(
        id=_tagged(value.id, tag), number=_tagged(value.number, tag)),
    RunningJob: lambda value, _, tag: value._replace(id=_tagged(value.id, tag)),
    Grant: lambda value, _, tag: value._replace(ticket=_tagged(value.ticket, tag)),
}
