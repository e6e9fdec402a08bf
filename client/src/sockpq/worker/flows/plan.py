"""The plan of a flow: the steps that share an item, and the items for which each step waits. No IO.

Steps with the same steps before and after them are a *stage*: they share an item, so that a step after a group of a
thousand waits for one item, and the steps after a failure are cancelled by few commands. A job waits for at most a
hundred items: for more there are *joins*, stages with a single job that does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from sockpq._protocol.arguments import AfterWhen
from sockpq.errors import BadArguments
from sockpq.worker.signature import Canvas, Parents, Step

WAITED_ITEMS_MAX = 100      # of one AFTER

Followers = tuple[str, list[str]]       # the item of a stage, and the items of the stages directly after it


class Stage(NamedTuple):
    """`steps`: their indexes, none in a join. `before`, `after`: the indexes of stages.

    `optional`: its failures do not hold back later stages.
    """

    item: str
    steps: tuple[int, ...]
    before: tuple[int, ...]
    after: tuple[int, ...]
    optional: bool


class Plan:
    """The plan by which a canvas is put. Raises BadArguments for an invalid canvas, TypeError for wrong arguments."""

    def __init__(self, canvas: Canvas, flow: str, cluster: str = "") -> None:
        """`flow`: its name, with which the names of its items begin.

        `cluster`: its cluster among several; the names of its items end with it, so that clients find them there.
        """
        self.steps = canvas.steps
        self._suffix = f".{cluster}" if cluster else ""
        self._check()
        self.stages, self.stage_of = self._staged(flow)
        for place in range(len(self.stages)):
            while len(self.stages[place].before) > WAITED_ITEMS_MAX:
                self._join(flow, place)

    @property
    def names_parents(self) -> bool:
        """True if any job must contain the numbers of jobs before it, so that these must be put first."""
        return any(self._names_parents(index) for index in range(len(self.steps)))

    @property
    def queue(self) -> str:
        """The queue of the flow's own jobs: one from which workers of this app take jobs."""
        return self.steps[0].call.queue

    @property
    def item(self) -> str:
        """One of the items of the flow, whose cluster has the whole flow."""
        return self.stages[0].item

    @property
    def last(self) -> list[Stage]:
        """The last stages, which have none after them."""
        return [stage for stage in self.stages if not stage.after]

    def levels(self) -> list[list[int]]:
        """Return the steps by level: each step comes only after steps of earlier levels."""
        depths: list[int] = []
        for step in self.steps:         # parents have smaller indexes
            depths.append(1 + max((depths[parent] for parent in step.parents), default=-1))
        return [[index for index, depth in enumerate(depths) if depth == level] for level in range(max(depths) + 1)]

    def joins_before(self, steps: Sequence[int]) -> list[Stage]:
        """Return the joins before these steps, in the order in which to put them."""
        places = list(dict.fromkeys(self.stage_of[index] for index in steps))
        found: list[int] = []
        while places := [one for place in places for one in self.stages[place].before if not self.stages[one].steps]:
            found += places
        return [self.stages[place] for place in reversed(dict.fromkeys(found))]

    def waits_for(self, stage: Stage) -> tuple[list[str], AfterWhen]:
        """Return the items that the jobs of a stage wait for, and the event of each that they wait for."""
        before = [self.stages[place] for place in stage.before]
        return [one.item for one in before], "end" if any(one.optional for one in before) else "done"

    def stage(self, index: int) -> Stage:
        """Return the stage of a step."""
        return self.stages[self.stage_of[index]]

    def parents_of(self, index: int, numbers: Sequence[int]) -> Parents | None:
        """Return how the job of a step names the steps before it. `numbers`: the number of each step's job."""
        if not self._names_parents(index):
            return None
        step = self.steps[index]
        optional = [self.steps[parent].optional for parent in step.parents]
        return Parents([numbers[parent] for parent in step.parents], optional, step.takes_result, step.joined)

    def watched(self) -> Iterator[list[Followers]]:
        """Yield the stages whose failure fails later ones, as many at a time as one job can wait for."""
        stages = [stage for stage in self.stages if stage.steps and stage.after and not stage.optional]
        followers = [(stage.item, [self.stages[after].item for after in stage.after]) for stage in stages]
        for start in range(0, len(followers), WAITED_ITEMS_MAX):
            yield followers[start : start + WAITED_ITEMS_MAX]

    def _names_parents(self, index: int) -> bool:
        """Return whether the step's job must name its parents: also without their results, if some may fail."""
        step = self.steps[index]
        some_optional = {self.steps[parent].optional for parent in step.parents} == {True, False}
        return step.takes_result or some_optional

    def _check(self) -> None:
        for step in self.steps:
            step.call.check(step.args, step.kwargs, step.takes_result)
            if not step.call.policy.numbered:
                raise BadArguments(f"{step.call.name}: a step of a flow needs @app.task(.., retain=) or result=True")
            for parent in step.parents if step.takes_result else ():
                before = self.steps[parent].call
                if not before.policy.result:
                    raise BadArguments(
                        f"{step.call.name} takes the result of {before.name}, which needs @app.task(.., result=True); "
                        f"{step.call.name}.si(..) takes none"
                    )

    def _join(self, flow: str, place: int) -> None:
        """Make a stage wait for joins instead of too many items."""
        stage = self.stages[place]
        joins = []
        for start in range(0, len(stage.before), WAITED_ITEMS_MAX):
            before = stage.before[start : start + WAITED_ITEMS_MAX]
            joins.append(len(self.stages))
            for one in before:
                after = tuple(joins[-1] if other == place else other for other in self.stages[one].after)
                self.stages[one] = self.stages[one]._replace(after=after)
            self.stages.append(Stage(f"{flow}/{joins[-1]}{self._suffix}", (), before, (place,), False))
        self.stages[place] = stage._replace(before=tuple(joins))

    def _staged(self, flow: str) -> tuple[list[Stage], list[int]]:
        children: list[list[int]] = [[] for _ in self.steps]
        for index, step in enumerate(self.steps):
            for parent in step.parents:
                children[parent].append(index)
        stages: dict[tuple[tuple[int, ...], tuple[int, ...], bool], list[int]] = {}
        for index, step in enumerate(self.steps):
            stages.setdefault(_kind(step, children[index]), []).append(index)
        places = {key: place for place, key in enumerate(stages)}
        stage_of = [places[_kind(step, children[index])] for index, step in enumerate(self.steps)]
        return [
            Stage(
                f"{flow}/{place}{self._suffix}", tuple(members), _distinct(stage_of, before),
                _distinct(stage_of, after), optional,
            )
            for place, ((before, after, optional), members) in enumerate(stages.items())
        ], stage_of


def _kind(step: Step, children: Sequence[int]) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
    return step.parents, tuple(children), step.optional


def _distinct(stage_of: Sequence[int], steps: Sequence[int]) -> tuple[int, ...]:
    return tuple(dict.fromkeys(stage_of[step] for step in steps))
