"""A program that was written for one cluster runs on two, through a move and the loss of both leaders."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.system.moved_programs import PROGRAMS, through_moves


@pytest.mark.parametrize("program", PROGRAMS)
def test_nothing_is_lost_or_done_twice(program: str, tmp_path: Path) -> None:
    through_moves(PROGRAMS[program], tmp_path, moves=1, nodes=3)
