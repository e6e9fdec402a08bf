"""Jobs in memory and in pages as one sequence."""

from __future__ import annotations

from random import Random

import pytest

from sockpqd.core.pages.merge import merged

Row = tuple[int, int]


@pytest.mark.parametrize("seed", range(20))
def test_all_come_once_and_in_order(seed: int) -> None:
    random = Random(seed)
    rows = random.sample([(when, seq) for when in range(20) for seq in range(20)], 200)
    lists: list[list[Row]] = [[] for _ in range(random.randrange(1, 30))]
    for row in rows:
        random.choice(lists).append(row)
    near, *pages = [sorted(one) for one in lists]
    pages = sorted(page for page in pages if page)
    assert list(merged(near, [(page[0], page) for page in pages], list, tuple)) == sorted(rows)


def test_a_page_is_read_when_its_first_job_is_next() -> None:
    read: list[int] = []

    def jobs_of(page: int) -> list[Row]:
        read.append(page)
        return [(page, 0), (page + 16, 0)]

    rows = merged([(5, 0), (25, 0)], [((10, 0), 10), ((20, 0), 20), ((40, 0), 40)], jobs_of, lambda row: row)
    assert next(rows) == (5, 0)
    assert read == []
    assert [next(rows) for _ in range(2)] == [(10, 0), (20, 0)]
    assert read == [10, 20]
    assert [next(rows) for _ in range(3)] == [(25, 0), (26, 0), (36, 0)]
    assert list(rows) == [(40, 0), (56, 0)]
