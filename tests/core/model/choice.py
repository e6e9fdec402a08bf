"""The queue that the reference model chooses, by each policy (spec/state-machine 4.1 to 4.3)."""

from __future__ import annotations

from sockpqd.core import Policy
from tests.core.model.jobs import ModelJob, first, random_bits

GOLDEN = 0x9E3779B97F4A7C15


def chosen_queue(
    lists: dict[str, list[ModelJob]], order: list[str] | None, policy: Policy, bits: int, *, in_turn: bool,
    after: str | None, weights: dict[str, int], of_item: bool = False,
) -> tuple[str | None, bool]:
    """One of `lists`, the candidates and what they would give, and whether it turns the cycle; None: there is none.

    `order`: the names asked for, in the order of the cycle; None: any queue, the one after `after` comes next.
    """
    names = sorted(lists)
    if not names:
        return None, False
    if order is not None:
        cycle = [name for name in order if name in lists]
    else:
        cycle = sorted(names, key=lambda name: (after is not None and name <= after, name))
    match policy:
        case Policy.RANDOM:
            return names[_draw(len(names), bits)], False
        case Policy.WEIGHT:
            return _by_weight(names, weights, bits, by_excess=order is None), False
        case Policy.RR:
            return cycle[0], True
        case Policy.ORDER:
            return cycle[0] if order is not None else names[0], False
        case Policy.SORTED:
            return names[0], False
        case Policy.OLDEST:
            return min(names, key=lambda name: first(lists[name]).ready_since()), False
        case Policy.PLACE if order is None and not of_item:
            return names[0], False
        case Policy.PLACE:
            return min(cycle, key=lambda name: (-first(lists[name]).priority, first(lists[name]).seq)), False
        case Policy.PRIORITY:
            highest = max(first(jobs).priority for jobs in lists.values())
            equal = [name for name in cycle if first(lists[name]).priority == highest]
            if in_turn or order is not None:
                return equal[0], len(equal) > 1 and in_turn
            return sorted(equal)[_draw(len(equal), bits)], False
        case Policy.FAIR:
            raise NotImplementedError("groups choose a job, and so its queue: see fair.py")


def ranks_behind(policy: Policy, job: ModelJob, other: ModelJob) -> bool:
    """Return whether a queue comes later by this job than by the other one."""
    match policy:
        case Policy.PRIORITY:
            return job.priority < other.priority
        case Policy.OLDEST:
            return job.ready_since() > other.ready_since()
        case Policy.PLACE:
            return (-job.priority, job.seq) > (-other.priority, other.seq)
    return False


def _draw(count: int, bits: int) -> int:
    return random_bits(bits) * count // 2**64


def _by_weight(names: list[str], weights: dict[str, int], bits: int, *, by_excess: bool) -> str:
    """Lay the queues side by side; with `by_excess` first 1 of each, then the rest of the ones of a similar size."""
    if not by_excess:
        return _side_by_side(names, [weights[name] for name in names], _draw(sum(weights[one] for one in names), bits))
    at = _draw(sum(weights[name] for name in names), bits)
    if at < len(names):
        return names[at]
    at -= len(names)
    heavy = [name for name in names if weights[name] > 1]
    for size in range(64):
        group = [name for name in heavy if (weights[name] - 1).bit_length() == size]
        total = sum(weights[name] - 1 for name in group)
        if at < total:
            while True:
                bits = random_bits(bits ^ GOLDEN)
                name = group[_draw(len(group), bits)]
                bits = random_bits(bits ^ GOLDEN)
                if _draw(2**size, bits) < weights[name] - 1:
                    return name
        at -= total
    raise AssertionError("nothing was drawn")


def _side_by_side(names: list[str], lengths: list[int], at: int) -> str:
    for name, length in zip(names, lengths, strict=True):
        if at < length:
            return name
        at -= length
    raise AssertionError("beyond the end")
