"""Ids and numbers of jobs, as text: they may be greater than what JavaScript's numbers can hold.

Where several clusters are used as one they have the name of their cluster before them: `a.17`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from pydantic import StringConstraints

ID = r"^([a-z0-9_-]{1,32}[.])?[0-9]{1,19}$"
SEQ = r"^[0-9]{1,19}$"

Id = Annotated[str, StringConstraints(pattern=ID)]
Seq = Annotated[str, StringConstraints(pattern=SEQ)]

Shown = Callable[[int], str]        # a client's way to write an id, Client.id_text
