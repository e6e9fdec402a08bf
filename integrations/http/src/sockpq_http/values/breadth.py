"""The breadth of JSON, found before it is decoded: each of its values takes many times the memory of its text."""

from __future__ import annotations

import re

VALUES_MAX = 65_536         # of one text: of 1,000 jobs 65 each

# As many commas and opening brackets, outside of strings; one match, in a single pass and without going back.
_MANY = re.compile(
    rb'(?:[^",\[{]*+(?:"(?:[^"\\]++|\\.)*+"[^",\[{]*+)*+[,\[{]){%d}+' % VALUES_MAX, re.DOTALL,
)


def is_too_wide(text: bytes) -> bool:
    """Return whether this text in UTF-8, if it is JSON, has more than VALUES_MAX values."""
    return len(text) > VALUES_MAX and _MANY.match(text) is not None
