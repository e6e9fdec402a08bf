"""The judge of rolling upgrades sees nodes that were away at once, and restarts that were none or two."""

from __future__ import annotations

import pytest

from tests.deploy.absences import Absence, absence_of, at_once

STOPPING = "{:.6f} n1 systemd[1]: Stopping sockpqd.service - sockpqd...\n"
STARTED = "{:.6f} n1 systemd[1]: Started sockpqd.service - sockpqd.\n"
OTHERS = "5.000000 n1 sockpqd[77]: Started sockpqd.service\n6.000000 n1 systemd[1]: Started ssh.service - ssh.\n"


def test_a_restart_is_read_from_the_lines_of_systemd() -> None:
    assert absence_of("n1", OTHERS + STOPPING.format(10.5) + OTHERS + STARTED.format(12)) == Absence(10.5, 12, "n1")


@pytest.mark.parametrize("lines", [
    "", OTHERS, STOPPING.format(1), STARTED.format(1), STARTED.format(1) + STOPPING.format(2),
    (STOPPING.format(1) + STARTED.format(2)) * 2,
])
def test_a_node_that_was_not_restarted_exactly_once_is_found(lines: str) -> None:
    with pytest.raises(AssertionError):
        absence_of("n1", lines)


def test_nodes_that_were_away_one_after_the_other_are_well() -> None:
    assert at_once([Absence(3, 4, "n3"), Absence(1, 2, "n1"), Absence(2, 3, "n2")]) == []


def test_nodes_that_were_away_at_once_are_found() -> None:
    assert at_once([Absence(3, 5, "n3"), Absence(1, 2, "n1"), Absence(1.9, 3, "n2")]) == [("n1", "n2")]
    assert at_once([Absence(1, 9, "n1"), Absence(2, 3, "n2")]) == [("n1", "n2")]
