"""Judges published histories again, without a cluster: `python -m tests.proof.judge proof/histories/*/*.xz`.

Histories of native clients are judged by tests/chaos/checker, those of beanstalkd's clients by
tests/chaos/beanstalkd/judge.py. The exit code is 1 when one has a violation.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from tests.chaos.beanstalkd.judge import judge
from tests.chaos.checker import Violation, check
from tests.proof.results import Evidence, load


def violations(evidence: Evidence) -> Iterator[Violation]:
    """Yield what is surely wrong in it."""
    if evidence.facts is not None:
        yield from check(evidence.history, evidence.facts)
        yield from judge(evidence.deeds, evidence.facts.start_ns)


def main(paths: list[Path]) -> int:
    """Judge them all; returns the exit code."""
    bad = 0
    for path in paths:
        evidence = load(path)
        found = list(violations(evidence))
        bad += bool(found)
        print(f"{path}: {len(evidence.history.records):,} commands, {len(evidence.deeds.deeds):,} of clients of "
              f"beanstalkd, {len(evidence.rounds)} rounds of faults: {len(found)} violations")
        for one in found:
            print(f"    {one.rule}: {one.text}")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main([Path(word) for word in sys.argv[1:]]))
