"""The bases of all models: of what requests have, and of what answers have."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict


class Model(BaseModel):
    """The body of a request: a field that it does not have is refused, as it would be ignored otherwise."""

    model_config = ConfigDict(extra="forbid", populate_by_name=True)


class View(BaseModel):
    """The body of an answer; fields that are not known or do not apply are left out."""

    model_config = ConfigDict(populate_by_name=True)


class Replayable(View):
    """The answer to a request that may have an Idempotency-Key.

    `replayed`: a request with this key was executed before, and this one changed nothing; what the first one was
    answered is not known any more.
    """

    replayed: bool = False
