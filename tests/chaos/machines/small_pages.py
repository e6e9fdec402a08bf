"""sockpqd with pages of jobs so small that every queue has some: an alteration (altered.py).

With limits.hot_bytes all but the first jobs of a queue leave memory, in pages of a few jobs and files of some pages,
and so do bodies of some bytes of all other jobs. So what happens in days with long queues happens in seconds with short
ones.
"""

from __future__ import annotations

import functools
from typing import Any

from sockpqd.cluster.paging import file_space, paging
from sockpqd.core import limits
from sockpqd.core.pages import paged_run
from sockpqd.core.pages.pager import Pager, Stage
from sockpqd.core.store import job_list, ready

STAGES = (Stage(20, 8, 2), Stage(5, 4, 2))
SIZES: tuple[tuple[Any, str, int], ...] = (
    (limits, "BODY_BYTES_MIN", 300),
    (ready, "UNSPLIT_JOBS_MAX", 20),
    (job_list, "BLOCK_JOBS_MAX", 16),
    (paged_run, "BLOCK_JOBS_MAX", 16),
    (file_space, "SEGMENT_BYTES", 100_000),
    (file_space, "WRITE_BYTES", 4096),
)


def alter() -> None:
    """Make the program's pages small."""
    for module, name, size in SIZES:
        assert hasattr(module, name), f"{module.__name__} has no {name} any more"
        setattr(module, name, size)
    paging.Pager = functools.partial(Pager, stages=STAGES)      # type: ignore[misc,assignment]
