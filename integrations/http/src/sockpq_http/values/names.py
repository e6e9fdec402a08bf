"""Parameters of paths that name things.

A name with a slash can be given in a body only, as a slash divides a path.
"""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

from sockpq_http.values.patterns import ID, KEY, NAME, SEQ

Queue = Annotated[str, Path(pattern=NAME, description="The name of the queue.")]
Item = Annotated[str, Path(pattern=NAME, description="The name of the item.")]
Topic = Annotated[str, Path(pattern=NAME, description="The name of the topic.")]
Channel = Annotated[str, Path(pattern=NAME, description="The name of the channel.")]
Pulse = Annotated[str, Path(pattern=NAME, description="The name of the pulse.")]
Group = Annotated[str, Path(pattern=NAME, description="The group: a word, or the name of a queue.")]
Worker = Annotated[str, Path(min_length=1, max_length=64, description="The name of the pool of workers.")]
JobKey = Annotated[str, Path(pattern=KEY, description="The key of the job in its queue.")]
JobId = Annotated[str, Path(pattern=ID, description="The id of this hand-out of the job, as a take has it.")]
JobNumber = Annotated[str, Path(pattern=ID, description="The number of the job.")]
Seq = Annotated[str, Path(pattern=SEQ, description="The place of the job in its queue.")]
