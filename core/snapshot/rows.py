"""Rows that several kinds of frames of a snapshot share."""

from __future__ import annotations

from msgspec.structs import astuple, replace

from sockpqd.core.snapshot import frames
from sockpqd.core.store.job import Extras, JobCounts, of_many


def extras_row(extras: Extras | None) -> frames.ExtrasRow | None:
    if extras is None:
        return None
    row = frames.ExtrasRow(*astuple(extras))
    if extras.counts is not None:
        row.counts = frames.CountsRow(*astuple(extras.counts))
    return row


def extras_of(row: frames.ExtrasRow) -> Extras:
    """Return the extras in a row; one shared object for jobs whose extras are common to many."""
    counts = None if row.counts is None else JobCounts(*astuple(row.counts))
    return of_many(replace(Extras(*astuple(row)), counts=counts))
