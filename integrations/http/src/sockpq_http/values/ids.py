"""Ids and numbers of jobs, as text: they may be greater than what JavaScript's numbers can hold.

Where several clusters are used as one they have the name of their cluster before them: `a.17`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import StringConstraints

from sockpq_http.values.patterns import ID, SEQ

Id = Annotated[str, StringConstraints(pattern=ID)]
Seq = Annotated[str, StringConstraints(pattern=SEQ)]

Shown = Callable[[int], str]        # a client's way to write an id, Client.id_text
