"""The refusal of a cluster that is switched off for good, as its copy in another region has taken its place."""

from __future__ import annotations

from sockpq import SockpqError


def fenced_for(error: SockpqError) -> str | None:
    """Return the id of the cluster in whose favour this one is switched off for good; None for any other error."""
    words = str(error).split()
    return words[-1] if words[-3:-1] == ["409", "Fenced"] or words[:2] == ["409", "Fenced"] else None


def fenced(replica: str) -> str:
    """Describe a cluster that is switched off in favour of the one with this id, and say what to do."""
    return (f"this cluster is switched off for good: its copy, the cluster {replica}, takes its place. Give programs "
            "the addresses of that one; these nodes can become its copy with empty data directories (docs/REGIONS.md, "
            "Going back)")
