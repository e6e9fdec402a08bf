"""Operators of a running cluster in which other things go wrong: add, remove, hand over, switch the service."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from sockpqd.cluster import limits
from sockpqd.cluster.administration import Administration
from sockpqd.cluster.driver import Driver
from sockpqd.core import Accepted, ChangeMember, MemberChange, SwitchService
from tests.sim.clients.outcomes import Outcome
from tests.sim.world.digest_codes import Kind, node_number
from tests.sim.world.node import SimNode
from tests.sim.world.plan import NEW_LEVEL, OLD_LEVEL

if TYPE_CHECKING:
    from tests.sim.faults.kinds import Faults
    from tests.sim.world.world import World

LATE_S = (0.0, 0.5)             # a node that is added is started so much later, or
ABSENT = 0.1                    # so often, not before faults stop
STOPPED = 0.6                   # a removed node is stopped so often
STOPS_S = (0.0, 1.0)            # after so long
BACK = 0.25                     # so often a node goes back to the older release
TWICE = 0.2                     # so often two operators remove a node at the same time


def _asked(driver: Driver) -> Any:
    """Return what Administration's methods need of an Administration: it cannot be made without an event loop."""
    return SimpleNamespace(_driver=driver)


def _leader(world: World) -> SimNode | None:
    """Return the node that an operator's commands reach."""
    return next((node for node in world.present if node.leads()), None)


def add_node(faults: Faults) -> str:
    """Add a new node with an empty disk."""
    world = faults.world
    fresh = [node for node in world.nodes.values() if node.name not in world.strangers and node not in world.members]
    return _add(faults, faults.rng.choice(fresh)) if fresh else ""


def add_again(faults: Faults) -> str:
    """Add a node that was removed, with its disk or an empty one."""
    world = faults.world
    gone = [node for name, node in world.nodes.items() if name in world.strangers and node not in world.members]
    if not gone or _leader(world) is None:
        return ""
    node = faults.rng.choice(gone)
    if node.damaged and not world.expendable(node.name):
        return ""
    if node.damaged or (faults.rng.random() < 0.5 and world.expendable(node.name)):
        node.crash(power=True)
        node.wipe()
        node.counts_again()
        return f"{_add(faults, node)}, emptied"
    return _add(faults, node)


def _add(faults: Faults, node: SimNode) -> str:
    world, leader = faults.world, _leader(faults.world)
    if leader is None:
        return ""
    own = world.addresses[node.name]
    world.write_file(node)
    install(node, at_least=world.level)
    world.strangers.add(node.name)
    leader.ask(world.command(ChangeMember(own.name, MemberChange.JOIN, peer=own.peer, client=own.client)))
    if faults.rng.random() >= ABSENT:
        faults.later(LATE_S, node.start_again)
    return f"{node.name} at {leader.name}"


def remove_node(faults: Faults) -> str:
    """Remove any voter, the leader too, or the learner."""
    world, rng, leader = faults.world, faults.rng, _leader(faults.world)
    if leader is None:
        return ""
    learner = world.checks.model.learner
    names = [learner] if learner is not None and rng.random() < 0.5 else list(world.voters)
    if leader.name in names and rng.random() < 0.3:
        names = [leader.name]
    chosen = rng.sample(names, min(len(names), 2 if rng.random() < TWICE else 1))
    return ", ".join(filter(None, [_remove(faults, leader, name) for name in chosen]))


def _remove(faults: Faults, leader: SimNode, name: str) -> str:
    world, driver = faults.world, leader.up
    rest = [world.nodes[voter] for voter in world.voters if voter != name]
    if name in world.voters:
        if rest and 2 * sum(node.sound for node in rest) <= len(rest):
            return ""                       # e.g. two nodes, one of which has lost its disk, cannot help themselves
        if not Administration._rest_can_decide(_asked(driver), name):
            world.trace.seen["removals refused"] += 1
            return ""
    configuration = leader.machine.membership.configuration
    world.removals.append((name, configuration))

    def answered(outcome: Outcome) -> None:
        if outcome.state == "applied" and outcome.reply == Accepted():
            _when_known(faults, leader, driver, driver.machine.index, lambda: _removed(faults, world.nodes[name]))
    leader.ask(world.command(ChangeMember(name, MemberChange.REMOVE, configuration), answered))
    return f"{name} at {leader.name}"


def _when_known(
    faults: Faults, leader: SimNode, driver: Driver, index: int, action: Callable[[], None],
) -> None:
    """Act when the operator's command returns; never, if the process that executes it dies before."""
    world, asked = faults.world, _asked(driver)
    until = world.events.now + limits.REMOVAL_KNOWN_S

    def look() -> None:
        if leader.driver is not driver or world.healed:
            return
        if Administration._known(asked, index):
            action()
        elif world.events.now < until:
            world.events.after(limits.POLL_S, look)
    world.events.after(limits.POLL_S, look)


def _removed(faults: Faults, node: SimNode) -> None:
    """Let the operator stop the removed node, or forget to."""
    def stop() -> None:
        if node not in faults.world.members:
            node.crash(power=faults.rng.random() < 0.5)
            node.held_down = True
            faults.world.trace.note(Kind.RETIRED, f"{node.name} was removed and is stopped", node_number(node.name))
    if faults.rng.random() < STOPPED:
        faults.later(STOPS_S, stop)


def transfer(faults: Faults) -> str:
    """Transfer leadership to a named node, or to any."""
    world, rng, leader = faults.world, faults.rng, _leader(faults.world)
    if leader is None:
        return ""
    driver = leader.up
    name = rng.choice([None, *(node.name for node in world.present if node is not leader)])
    word = driver.leadership.handover.begin(name)
    if word is not None:
        world.trace.seen[f"transfer {word}"] += 1
        return ""
    until, asked = world.events.now + limits.TRANSFER_S, _asked(driver)

    def look() -> None:
        if leader.driver is not driver:
            return
        done = Administration._new_leader(asked) is not None
        if not done and world.events.now < until:
            world.events.after(limits.POLL_S, look)
            return
        driver.leadership.handover.end()
        world.trace.seen["transfer done" if done else "transfer timeout"] += 1
        leader.wake(world.events.now)
    look()
    leader.wake(world.events.now)
    return f"from {leader.name} to {name or 'any'}"


def switch_service(faults: Faults) -> str:
    """Switch the whole service offline for a while."""
    world, leader = faults.world, _leader(faults.world)
    if leader is None or not world.checks.model.online:
        return ""
    leader.ask(world.command(SwitchService(False)))

    def switch_on() -> None:
        node = _leader(world)
        if node is not None:
            node.ask(world.command(SwitchService(True)))
        else:
            faults.later((0.1, 0.5), switch_on)
    faults.later((0.1, 0.8), switch_on)
    return f"at {leader.name}"


def install(node: SimNode, *, at_least: int) -> None:
    """Give a node that must know this level the newer release, if it has the older one."""
    if node.known_level is not None and node.known_level < at_least:
        node.crash(power=False)
        node.known_level, node.went_back = NEW_LEVEL, False


def other_release(faults: Faults) -> str:
    """Let an operator stop a node and start the newer release there, or the older one while that is possible."""
    world, rng = faults.world, faults.rng
    older = [node for node in world.present if node.known_level == OLD_LEVEL]
    newer = [node for node in world.present if node.known_level == NEW_LEVEL]
    back = world.level == OLD_LEVEL and newer and rng.random() < BACK
    if not back and not older:
        return ""
    node = rng.choice(newer if back else older)
    node.crash(power=False)
    node.known_level, node.went_back = OLD_LEVEL if back else NEW_LEVEL, bool(back)
    if not node.held_down:
        world.start_later(node)
    return f"{node.name} has level {node.known_level}"


CHANGES: dict[str, Callable[[Faults], str]] = {
    "add node": add_node,
    "add again": add_again,
    "remove node": remove_node,
    "transfer": transfer,
    "service offline": switch_service,
    "other release": other_release,
}
