"""The base classes of all models, for requests and for answers."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """The body of a request: an unknown field is refused, instead of being ignored."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class View(BaseModel):
    """The body of an answer; fields that are not known or do not apply are left out."""

    model_config = ConfigDict(populate_by_name=True)


class Replayable(View):
    """The answer to a request that may have an Idempotency-Key.

    `replayed`: a request with this key was executed before, and this one changed nothing; the answer to the first one
    is no longer known.
    """

    replayed: bool = False
