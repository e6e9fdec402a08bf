"""`pqctl cluster hash`: compares the nodes' states at equal positions in the log."""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field

from sockpq import SockpqError

from sockpqd.pqctl.connect import cluster_of
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED, UNREACHED

PAUSE_S = 0.02
ANSWER_S = 1.0          # timeout of one answer


@dataclass
class Comparison:
    """The hashes reported by each node so far, by position."""

    told: dict[str, dict[int, str]] = field(default_factory=dict)

    def add(self, name: str, applied: int, value: str) -> None:
        """Add an answer of a node."""
        self.told.setdefault(name, {})[applied] = value

    @property
    def different(self) -> int | None:
        """The first position at which nodes reported different hashes, None if there is none."""
        values: dict[int, set[str]] = {}
        for answers in self.told.values():
            for applied, value in answers.items():
                values.setdefault(applied, set()).add(value)
        return min((applied for applied, told in values.items() if len(told) > 1), default=None)

    def common(self, names: Iterable[str]) -> int | None:
        """Return the newest position that all these nodes have reported, None if there is none."""
        told = [self.told.get(name, {}).keys() for name in names]
        return max(set(told[0]).intersection(*told[1:]), default=None) if told else None

    def rows(self, position: int | None) -> list[tuple[str, int, str]]:
        """List name, position and hash of every node: at `position` if it reported that, otherwise its last answer."""
        found = []
        for name, answers in sorted(self.told.items()):
            at = position if position in answers else list(answers)[-1]
            assert at is not None
            found.append((name, at, answers[at]))
        return found


def show(call: Call) -> int:
    """Ask until the nodes can be compared or the timeout has passed; prints the result."""
    until = time.monotonic() + call.timeout
    comparison = Comparison()
    with cluster_of(call) as (client, servers):
        members = sorted({line.name for view in servers.views for line in view.nodes})
        while True:
            for name, address in servers.named():
                with suppress(SockpqError):         # a node that does not answer is reported as missing
                    comparison.add(name, *client.cluster_hash(address, timeout=min(ANSWER_S, call.timeout)))
            different = comparison.different
            common = comparison.common(members)
            silent = [name for name in members if name not in comparison.told]
            if different is not None or common is not None or time.monotonic() > until:
                break
            if silent and comparison.common(comparison.told) is not None:
                break                               # nothing more to learn
            time.sleep(PAUSE_S)
    if different is not None:
        return _tell(call, comparison, False, different, f"DIFFERENT at position {different}", REFUSED)
    if common is not None:
        return _tell(call, comparison, True, common, f"equal at position {common}", DONE)
    why = f"{', '.join(silent)} did not answer" if silent else "never seen at the same position, try again"
    return _tell(call, comparison, None, comparison.common(comparison.told), f"not all compared: {why}", UNREACHED)


def _tell(
    call: Call, comparison: Comparison, equal: bool | None, position: int | None, sentence: str, code: int
) -> int:
    rows = comparison.rows(position)
    lines = [sentence, *(f"  {name}  {applied}  {value}" for name, applied, value in rows)]
    nodes = [{"name": name, "applied": applied, "hash": value} for name, applied, value in rows]
    call.answer("\n".join(lines), {"equal": equal, "nodes": nodes})
    return code
