"""All attacks, in the order in which they are made."""

from __future__ import annotations

from tests.hostile.attack import Attack
from tests.hostile.attacks import (
    bodies,
    clock,
    commands,
    connections,
    disk,
    doors,
    forwarded,
    kept,
    lists,
    memory,
    one_disk,
    overload,
    paged,
    peers,
    programs,
    pushed,
    releases,
    rest,
    rubbish,
    searches,
    sessions,
    settings,
    sqs,
    subscriptions,
    tenants,
    tls,
    tubes,
    work,
    wrong_lines,
)

ATTACKS: tuple[Attack, ...] = (
    *commands.ATTACKS, *releases.ATTACKS, *bodies.ATTACKS, *disk.ATTACKS, *one_disk.ATTACKS, *connections.ATTACKS,
    *memory.ATTACKS, *doors.ATTACKS, *tls.ATTACKS, *programs.ATTACKS, *pushed.ATTACKS, *rest.ATTACKS, *sqs.ATTACKS,
    *tubes.ATTACKS, *overload.ATTACKS, *lists.ATTACKS, *sessions.ATTACKS, *subscriptions.ATTACKS, *clock.ATTACKS,
    *paged.ATTACKS, *work.ATTACKS, *searches.ATTACKS, *kept.ATTACKS, *forwarded.ATTACKS, *rubbish.ATTACKS,
    *wrong_lines.ATTACKS, *settings.ATTACKS, *peers.ATTACKS, *tenants.ATTACKS,
)
