"""All attacks, in the order in which they are made."""

from __future__ import annotations

from tests.hostile.attack import Attack
from tests.hostile.attacks import bodies, commands, disk, releases

ATTACKS: tuple[Attack, ...] = (*commands.ATTACKS, *releases.ATTACKS, *bodies.ATTACKS, *disk.ATTACKS)
