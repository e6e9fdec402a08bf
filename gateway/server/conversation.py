"""What happens to one client's connection, without sockets: bytes come, are taken, or come no more."""

from __future__ import annotations

from gateway.link import Link
from gateway.server.hub import Hub
from gateway.server.pipeline import Pipeline
from gateway.server.timeouts import Turn


class Conversation:
    """The conversation with one client. All calls come from the loop."""

    __slots__ = ("__weakref__", "_flow", "_hub", "_parser", "_state", "pipeline")

    def __init__(self, hub: Hub, link: Link, *, on_trial: bool = False) -> None:
        """`on_trial`: the client has a place only if it is an administrator."""
        self.pipeline = Pipeline(hub, link, on_trial=on_trial)
        self._hub = hub
        self._parser = self.pipeline.parser
        self._flow = self.pipeline.flow
        self._state = self.pipeline.state

    @property
    def closed(self) -> bool:
        """Is nothing answered any more?"""
        return self.pipeline.closed

    @property
    def stranger(self) -> bool:
        """Must the client say who it is, and has not yet?"""
        return self.pipeline.guard.stranger

    def receive(self, data: bytes) -> None:
        """The client sent bytes."""
        pipeline, parser = self.pipeline, self._parser
        if pipeline.closed:
            return
        parser.feed(data)
        pipeline.dry = False
        if not pipeline.awake:
            pipeline.go_on()
        if not pipeline.closed:
            pipeline.throttle()
        if parser.holding or self._flow.held_bytes or self._state.transaction is not None:
            pipeline.weigh()

    def end(self) -> None:
        """The client sent its last byte: a command that is blocked is cancelled, the others are answered."""
        pipeline = self.pipeline
        pipeline.ended = True
        if pipeline.waiter is not None and pipeline.waiter.number:
            pipeline.finish()
        else:
            pipeline.go_on()

    def lost(self) -> None:
        """The connection is gone: what waits for a turn is not executed, as what was not begun."""
        self.pipeline.close()
        self._hub.cluster.withdraw(self.pipeline)
        self._flow.full = False
        self.pipeline.weigh()

    def output_full(self) -> None:
        """The client does not take its answers."""
        self._flow.full = True
        self.pipeline.weigh()

    def output_taken(self) -> None:
        """There is room for answers again."""
        self._flow.taken()
        self.pipeline.weigh()
        self.pipeline.wake()

    def turn(self) -> tuple[Turn, int]:
        """What is waited for, and a number that changes when the client gets on."""
        parser = self._parser
        if self.pipeline.closed or self._flow.paused or self.pipeline.held_up:      # what is held up is not late
            return Turn.OURS, 0
        if parser.amid_command and parser.lines:    # the data of a CLONE may take as long as they get on
            return Turn.REST, parser.complete if self._state.clone is None else -parser.missing_bytes
        if self.pipeline.answering:
            return Turn.OURS, 0
        return (Turn.NEXT, parser.complete) if parser.lines else (Turn.HELLO, 0)

    def say_last(self, answer: bytes) -> None:
        """Answer and close."""
        self.pipeline.say_last(answer)

    def finish(self) -> None:
        """Send what is answered and close."""
        self.pipeline.finish()

    def cut(self, why: str) -> None:
        """Close at once."""
        self.pipeline.cut(why)
