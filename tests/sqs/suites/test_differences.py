"""The tables of differences: each has a source."""

from __future__ import annotations

import re

import pytest

from tests.sqs.suites.differences import SUITES, TABLES, rows


@pytest.mark.parametrize("suite", SUITES)
def test_each_difference_says_what_amazon_does_and_where_that_is_written(suite: str) -> None:
    found = rows(suite)
    assert len(found) > 10
    sources = set(re.findall(r"^\* \*\*(\w+)\*\*", TABLES.read_text("utf-8"), re.MULTILINE))
    for name, (there, here, source) in found.items():
        assert there, name
        assert here, name
        assert sources & set(re.findall(r"\w+", source)) or "https://" in source, f"{name} has no source: {source}"
