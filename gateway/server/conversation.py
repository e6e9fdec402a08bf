"""The conversation with one client, independent of sockets: input, end of input, and back-pressure events."""

from __future__ import annotations

from sockpqd.connections import Expected
from sockpqd.gateway.limits import READ_COUNTED_BYTES
from sockpqd.gateway.link import Link
from sockpqd.gateway.server.hub import Hub
from sockpqd.gateway.server.pipeline import Pipeline


class Conversation:
    """Turns the events of one connection into parser and pipeline steps. All calls come from the event loop."""

    __slots__ = ("__weakref__", "_flow", "_hub", "_parser", "_state", "pipeline")

    def __init__(self, hub: Hub, link: Link, *, on_trial: bool = False) -> None:
        """`on_trial`: the client may stay only if it authenticates as an administrator."""
        self.pipeline = Pipeline(hub, link, on_trial=on_trial)
        self._hub = hub
        self._parser = self.pipeline.parser
        self._flow = self.pipeline.flow
        self._state = self.pipeline.state

    @property
    def closed(self) -> bool:
        """True if the conversation has ended, so that no more answers will be sent."""
        return self.pipeline.closed

    @property
    def unauthenticated(self) -> bool:
        """True if the client still has to authenticate."""
        return self.pipeline.guard.unauthenticated

    def receive(self, data: bytes) -> None:
        """Parse received bytes and execute the commands that are complete."""
        pipeline, parser = self.pipeline, self._parser
        if pipeline.closed:
            return
        parser.feed(data)
        if len(data) >= READ_COUNTED_BYTES and self._hub.count_read(len(data)):
            self._flow.read_much = True
        pipeline.caught_up = False
        if not pipeline.awake:
            pipeline.go_on()
        if not pipeline.closed:
            pipeline.throttle()
        if parser.holding or self._flow.held_bytes or self._state.transaction is not None:
            pipeline.weigh()

    def end(self) -> None:
        """Handle the end of input: cancel a blocked command and answer the others."""
        pipeline = self.pipeline
        pipeline.ended = True
        waiter = pipeline.waiter
        if waiter is not None and waiter.was_queued:
            if not pipeline.answering_before_waiter:
                pipeline.finish()
                return
            waiter.end_of_input()
        pipeline.go_on()

    def lost(self) -> None:
        """Handle a lost connection: commands still queued for the log are withdrawn, as are those not yet begun."""
        self.pipeline.close()
        self._hub.cluster.withdraw(self.pipeline)
        self._flow.full = False
        self.pipeline.weigh()

    def output_full(self) -> None:
        """Stop producing answers: the client is not reading them."""
        self._flow.full = True
        self.pipeline.weigh()

    def output_taken(self) -> None:
        """Continue: there is room for answers again."""
        self._flow.taken()
        self.pipeline.weigh()
        self.pipeline.wake()

    def expected(self) -> tuple[Expected, int]:
        """Return what the conversation waits for, and a number that changes when the client makes progress."""
        parser = self._parser
        if self.pipeline.closed or self._flow.paused or self.pipeline.held_up:      # commands we hold up are not late
            return Expected.OURS, 0
        if parser.amid_command and parser.lines:    # the data of a CLONE may take any time as long as they arrive
            return Expected.REST, parser.complete if self._state.clone is None else -parser.missing_bytes
        if self.pipeline.answering or self._state.subscribed is not None:
            return Expected.OURS, 0
        return (Expected.NEXT, parser.complete) if parser.lines else (Expected.HELLO, 0)

    def say_last(self, answer: bytes) -> None:
        """Send the answer and close."""
        self.pipeline.say_last(answer)

    def finish(self) -> None:
        """Send the answers so far and close."""
        self.pipeline.finish()

    def cut(self, why: str) -> None:
        """Close immediately and log the reason."""
        self.pipeline.cut(why)
