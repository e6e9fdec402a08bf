"""Ids of jobs that contain the cluster of the job.

Each cluster counts its jobs, numbers and tickets from 1 on, so the same numbers are in use in all of them. A client
that uses several clusters adds a *tag* of the cluster to the numbers that it returns to its program, in bits that no
cluster uses, and removes it before it sends them. So they stay plain integers, unique among the clusters of the map,
which may be stored, compared and passed to other processes. Without a map, and for the first cluster of the map, there
is no tag.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, count

TAG_BITS = 11           # so that an id with a tag has 63 bits at most
TAG_SHIFT = 52          # numbers of jobs, which begin with the time, get there in the year 2109, and ids never
ID_MASK = (1 << TAG_SHIFT) - 1


def tag_of(job: int) -> int:
    """Return the tag in the id of a job, 0 without one."""
    return job >> TAG_SHIFT


def local_id(job: int) -> int:
    """Return the id, or the number, of a job as its cluster knows it."""
    return job & ID_MASK


def tags(clusters: Sequence[str]) -> list[int]:
    """Return the tag of each of these clusters, by their ids (16 hexadecimal digits), all different and none 0.

    A tag consists of bits of the id; if an earlier cluster has the same, of other bits. So a cluster added after the
    others does not change their tags.
    """
    found: list[int] = []
    for cluster in clusters:
        candidates = (int(cluster, 16) >> shift & (1 << TAG_BITS) - 1 for shift in range(64 - TAG_BITS, -1, -1))
        found.append(next(tag for tag in chain(candidates, count(1)) if tag and tag not in found))
    return found
