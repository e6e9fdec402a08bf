"""Among which of several queues a command chooses, and how: the connection's own policy, and whose turn it is.

With BY PRIORITY the queues that hold jobs of the same priority take turns (spec/state-machine 4.3). The order is the
connection's: it goes with each operation into the log, and the queue that gave a job stands last from then on.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from core import Get, Handed, HandedMany, Pick, Policy, Reply
from gateway.limits import ROTATION_QUEUES_MAX

if TYPE_CHECKING:
    from gateway.server.conversation import Conversation


class Rotation:
    """When each queue was used last on a connection. With too many names it begins anew."""

    def __init__(self) -> None:
        self._used: dict[str, int] = {}
        self._turn = 0

    def order(self, queues: tuple[str, ...]) -> tuple[str, ...]:
        """The queues, whose turn it is first; those never used as they were named."""
        return tuple(sorted(queues, key=lambda queue: self._used.get(queue, 0)))

    def note(self, reply: Reply) -> Reply:
        """The queues that gave these jobs go to the end."""
        if isinstance(reply, Handed | HandedMany):
            for job in (reply,) if isinstance(reply, Handed) else reply.jobs:
                self._turn += 1
                self._used[job.queue] = self._turn
            if len(self._used) > ROTATION_QUEUES_MAX:
                self._used.clear()
        return reply


def chosen(conversation: Conversation, command: Get | Pick) -> Get | Pick:
    """The command with what the connection adds to it, when it names several queues or none."""
    get = command.get if isinstance(command, Pick) else command
    policy = conversation.policy
    if isinstance(command, Pick) and command.policy is not None:
        policy = command.policy
    effective = conversation.hub.cluster.machine.settings.policy if policy is None else policy
    if effective is Policy.PRIORITY and get.queues is not None:
        if conversation.rotation is None:
            conversation.rotation = Rotation()
        get = replace(get, queues=conversation.rotation.order(get.queues))
    if isinstance(command, Pick):
        return replace(command, get=get, policy=policy)
    return get if policy is None else Pick(get, policy=policy)


def known_empty(conversation: Conversation, get: Get) -> bool:
    """FASTEMPTY: is it certain, without the log, that there is nothing for this GET?

    Only what this connection was told before it may rely on, so that nothing of it may be in flight.
    """
    cluster = conversation.hub.cluster
    machine = cluster.machine
    if not cluster.serving or get.session is not None or not conversation.nothing_in_flight():
        return False
    if get.queues is None:
        return not machine.nonempty()
    if get.item is not None:
        return not any(machine.ready_of_item(queue, get.item) for queue in get.queues)
    return not any(map(machine.ready, get.queues))
