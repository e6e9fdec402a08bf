"""A job to put: its body and options, and the arguments of the client's put()."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, model_validator

from sockpq_http.limits import PUT_JOBS_MAX
from sockpq_http.values.bodies import CONTENT_TYPE, Body
from sockpq_http.values.model import Model
from sockpq_http.values.times import Moment, MomentText, Span, SpanText

OnDuplicate = Literal["fail", "ignore", "replace"]
When = Literal["done", "end", "failed"]


class Dedup(Model):
    """At most one job with this key is put in this many seconds, whatever its outcome."""

    key: str = Field(min_length=1, max_length=128)
    seconds: Span


class CommonPut(Body):
    """The options of any job: for one queue, for several or for a topic."""

    priority: int = Field(default=0, description="Greater ones first; 64 bits.")
    item: str | None = Field(default=None, description="The jobs of an item belong together.")
    delay: Span | None = Field(default=None, description="It is active that much later.")
    at: Moment | None = Field(default=None, description="It is active from then on.")
    ttl: Span | None = Field(default=None, description="It is removed unless it is taken within that time.")
    every: Span | None = Field(default=None, description="DONE makes it active again after this period.")
    after: list[str] | None = Field(
        default=None, min_length=1, max_length=100, description="Items: it waits for their end."
    )
    when: When | None = Field(default=None, description="What of these items it waits for.")
    key: str | None = Field(
        default=None, min_length=1, max_length=128, description="Its name in its queue, while unfinished."
    )
    tries: int | None = Field(default=None, ge=0, le=1_000_000, description="It is given up after that many hand-outs.")
    group: str | None = Field(default=None, description="Its owner, for queues that choose by groups.")
    dedup: Dedup | None = None

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of put_to() and publish(), without the queues. Raises BadArguments."""
        found: dict[str, Any] = {
            name: value for name in COMMON if (value := getattr(self, name)) is not None
        }
        if self.dedup is not None:
            found["dedup"] = (self.dedup.key, self.dedup.seconds)
        return {**found, "data": self.data() or b"", "headers": self.header_fields()}


COMMON = ("priority", "item", "delay", "at", "ttl", "every", "after", "when", "key", "tries", "group")


class PutJob(CommonPut):
    """A job for one queue."""

    new_item: bool = Field(default=False, description="It belongs to a new item, which the server names.")
    on_duplicate: OnDuplicate | None = Field(default=None, description="If an unfinished job has the key.")
    number: bool = Field(default=False, description="It gets a number, by which it is found in every state.")
    lease: Span | None = Field(default=None, description="The lease for workers that take it without one.")

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of put(), without the queue. Raises BadArguments."""
        found = super().arguments()
        if self.on_duplicate is not None:
            found["on_duplicate"] = self.on_duplicate
        if self.lease is not None:
            found["lease"] = self.lease
        return {**found, "new_item": self.new_item, "number": self.number}


class Put(PutJob):
    """A job for one queue, or several `jobs`, each with options of its own."""

    jobs: list[PutJob] | None = Field(
        default=None, min_length=1, max_length=PUT_JOBS_MAX, description="Several jobs; then there is no other field."
    )

    @model_validator(mode="after")
    def _one_or_several(self) -> Put:
        if self.jobs is not None and len(self.model_fields_set) > 1:
            raise ValueError("with `jobs` each of them has its own options: there is no other field")
        return self


class RawOptions(Model):
    """The options of a job whose body is the request's, as parameters."""

    priority: int = 0
    item: str | None = None
    delay: SpanText | None = None
    at: MomentText | None = None
    ttl: SpanText | None = None
    key: str | None = Field(default=None, min_length=1, max_length=128)
    on_duplicate: OnDuplicate | None = None
    tries: int | None = Field(default=None, ge=0, le=1_000_000)
    group: str | None = None
    number: bool = False

    def arguments(self, data: bytes, headers: dict[str, str]) -> dict[str, Any]:
        """Return the arguments of put(), without the queue."""
        found = self.model_dump(exclude_none=True)
        return {**found, "data": data, "headers": headers or None}


def raw_headers(fields: list[tuple[str, str]], kind: str | None) -> dict[str, str]:
    """Return the headers of a job from a request's: Sockpq-Header-*, and the content type."""
    prefix = "sockpq-header-"
    found = {name[len(prefix):]: value for name, value in fields if name.startswith(prefix)}
    if kind:
        found.setdefault(CONTENT_TYPE, kind)
    return found
