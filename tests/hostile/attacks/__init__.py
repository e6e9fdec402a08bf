"""All attacks, in the order in which they are made."""

from __future__ import annotations

from tests.hostile.attack import Attack
from tests.hostile.attacks import commands, releases

ATTACKS: tuple[Attack, ...] = (*commands.ATTACKS, *releases.ATTACKS)
