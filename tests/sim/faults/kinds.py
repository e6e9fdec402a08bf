"""The kinds of faults: one function for each, drawn by the plan's weights."""

from __future__ import annotations

import errno
from collections.abc import Callable
from typing import TYPE_CHECKING

from tests.sim.faults.operators import CHANGES
from tests.sim.faults.twins import Twin
from tests.sim.world.node import SimNode

if TYPE_CHECKING:
    from tests.sim.world.world import World

CALM_S = 1.0                    # a node with an older copy of its files has asked the others until then
STARTED_S = (0.0, 0.3)          # so soon it is started, and the leader dies
TOLD_S = (0.1, 1.2)             # and so soon it can ask all others, whatever else went wrong
LEADER_DIES = 0.6               # so often the leader dies a moment before or after
# What fails, and with what: a sync finds no space where that is only looked for when the bytes are written.
FAILURES = (
    *(("sync", errno.EIO),) * 4, ("sync", errno.ENOSPC), ("sync_directory", errno.EIO), ("write", errno.EIO),
)
WALL_JUMPS_MS = (-86_400_000, -3_600_000, -60_000, -700, 0, 700, 60_000, 3_600_000, 86_400_000)


class Faults:
    """Fires a fault now and then, and ends it after a while."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.rng = world.rng
        self._kinds = [kind for kind, weight in world.plan.weights.items() if weight]
        self._weights = [world.plan.weights[kind] for kind in self._kinds]
        self._twins: list[SimNode] = []

    def next(self) -> None:
        """Fire one fault, and schedule the next."""
        world = self.world
        if world.healed:
            return
        if "older copy" in self._kinds:
            self._copy_files()
        if self._kinds and world.events.now >= world.calm_until:
            kind = self.rng.choices(self._kinds, self._weights)[0]
            what = KINDS[kind](self)
            if what:
                world.trace.fault(kind, what)
                world.halt_if_enough()
        world.events.after(self.rng.expovariate(1 / world.plan.fault_s), self.next)

    def later(self, seconds: tuple[float, float], action: Callable[[], None]) -> None:
        """Schedule an action, unless faults have stopped then."""
        def unless_healed() -> None:
            if not self.world.healed:
                action()
        self.world.events.after(self.rng.uniform(*seconds), unless_healed)

    def _victim(self) -> SimNode | None:
        """Choose a running node, the leader as often as not."""
        running = [node for node in self.world.present if node.running]
        leading = [node for node in running if node.up.replica.is_leader]
        choice = leading if leading and self.rng.random() < 0.5 else running
        return self.rng.choice(choice) if choice else None

    def _names(self) -> list[str]:
        return [node.name for node in self.world.present]

    def _two(self) -> list[str]:
        names = self._names()
        return self.rng.sample(names, 2) if len(names) > 1 else []

    # Network

    def lose_connection(self) -> str:
        two = self._two()
        if not two:
            return ""
        self.world.network.lose(*two)
        return " ".join(two)

    def _block(self, ways: list[tuple[str, str]], *, reset: bool) -> None:
        for sender, receiver in ways:
            self.world.network.block(sender, receiver, reset=reset)
        self.later((0.2, 2.5), self.world.network.unblock)

    def _apart(self, allowed: Callable[[str, str], bool]) -> str:
        """Cut all directions that are not allowed."""
        names = self._names()
        ways = [(a, b) for a in names for b in names if a != b and not allowed(a, b)]
        reset = self.rng.random() < 0.5
        self._block(ways, reset=reset)
        return ", ".join(f"{a}-{b}" for a, b in ways if a < b) + (" reset" if reset else " silent")

    def partition(self) -> str:
        names = self._names()
        if len(names) < 2:
            return ""
        side = self.rng.sample(names, self.rng.randrange(1, len(names)))
        return self._apart(lambda a, b: (a in side) == (b in side))

    def isolate_leader(self) -> str:
        victim = self._victim()
        return self._apart(lambda a, b: victim.name not in (a, b)) if victim else ""

    def bridge(self) -> str:
        names = self.rng.sample(self._names(), len(self._names()))
        middle, half = names[0], len(names) // 2 + 1
        left = names[1:half]
        return self._apart(lambda a, b: middle in (a, b) or (a in left) == (b in left))

    def random_cuts(self) -> str:
        kept = {frozenset((a, b)): self.rng.random() < 0.6 for a in self._names() for b in self._names() if a < b}
        return self._apart(lambda a, b: kept[frozenset((a, b))])

    def one_way(self) -> str:
        two = self._two()
        if not two:
            return ""
        self._block([(two[0], two[1])], reset=False)
        return " to ".join(two)

    def end_one_side(self) -> str:
        """Reset one side of a node's connections, as a middlebox does; the other side may never notice."""
        network, victim = self.world.network, self._victim()
        others = [name for name in self._names() if victim is not None and name != victim.name]
        if victim is None or not others:
            return ""
        if self.rng.random() < 0.5:
            others = [self.rng.choice(others)]
        theirs, silent = self.rng.random() < 0.5, self.rng.random() < 0.5
        ends = [(other, victim.name) if theirs else (victim.name, other) for other in others]
        seen = [f"{name} from {other}" for name, other in ends if network.end_for(name, other)]
        if seen and silent:
            self._block([way for a, b in ends for way in ((a, b), (b, a))], reset=False)
        return ", ".join(seen) + (" silent" if seen and silent else "")

    def slow_link(self) -> str:
        two = self._two()
        if not two:
            return ""
        channel = self.world.network.channels[two[0], two[1]]
        channel.delay_s, channel.jitter_s = self.rng.choice((0.02, 0.1, 0.4)), self.rng.choice((0.0, 0.05, 0.3))
        self.later((0.3, 2.0), channel.hurry)
        return f"{' to '.join(two)}, {channel.delay_s} s"

    def narrow_link(self) -> str:
        two = self._two()
        if not two:
            return ""
        channel = self.world.network.channels[two[0], two[1]]
        channel.bytes_per_s = self.rng.choice((1000.0, 5000.0, 50_000.0))
        self.later((0.3, 2.0), channel.hurry)
        return f"{' to '.join(two)}, {channel.bytes_per_s:.0f} bytes/s"

    def depose_leader(self) -> str:
        """Depose a leader with one friend whose answers are slow, and elect it again before they arrive."""
        leaders = [name for name, node in self.world.nodes.items() if node.serving]
        voters = self.world.voters
        if not leaders or leaders[0] not in voters or len(voters) < 5:
            return ""
        leader = leaders[0]
        friend, *others = self.rng.sample([name for name in voters if name != leader], len(voters) - 1)
        network = self.world.network
        network.channels[friend, leader].delay_s = 2.0
        ways = [(a, b) for a in (leader, friend) for b in others]
        for a, b in [*ways, *((b, a) for a, b in ways)]:
            network.block(a, b, reset=False)

        def elect_again() -> None:
            network.unblock()
            for node in self.world.nodes.values():
                if node.running and node.name != leader:
                    node.switch(online=False)

        def cut_friend() -> None:
            network.block(leader, friend, reset=False)
            for other in others[1:]:
                network.channels[leader, other].delay_s = 0.3
        self.later((1.1, 1.2), elect_again)
        self.later((1.6, 1.7), cut_friend)
        self.later((3.5, 3.6), self._undo_deposition)
        return f"{leader}, friend {friend}"

    def _undo_deposition(self) -> None:
        self.world.network.repair()
        for node in self.world.nodes.values():
            if node.running:
                node.switch(online=True)

    # Machines

    def crash(self) -> str:
        return self._crash(power=False)

    def lose_power(self) -> str:
        return self._crash(power=True)

    def _crash(self, *, power: bool) -> str:
        victim = self._victim()
        if victim is None:
            return ""
        victim.crash(power=power)
        self.world.start_later(victim)
        return victim.name

    def crash_at_step(self) -> str:
        victim = self._victim()
        if victim is None:
            return ""
        victim.disk.crash_in = self.rng.randrange(1, 40)
        return f"{victim.name} after {victim.disk.crash_in}"

    def pause(self) -> str:
        victim = self._victim()
        if victim is None:
            return ""
        seconds = self.rng.choice((0.05, 0.3, 0.7, 1.2, 2.5))
        victim.pause(seconds)
        return f"{victim.name} {seconds} s"

    def jump_clock(self) -> str:
        """Set the clocks of the same nodes each time, one or several at once: what the others say of theirs is right.
        """
        wrong = self.world.wrong_clocks
        names = wrong if len(wrong) == 1 else self.rng.sample(wrong, self.rng.randrange(1, len(wrong) + 1))
        for name in names:
            self.world.nodes[name].clock.wall_offset_ms = self.rng.choice(WALL_JUMPS_MS)
        return ", ".join(f"{name} {self.world.nodes[name].clock.wall_offset_ms} ms" for name in names)

    def switch_offline(self) -> str:
        victim = self._victim()
        if victim is None or not victim.up.leadership.online:
            return ""
        victim.switch(online=False)
        self.later((0.1, 1.5), lambda: victim.switch(online=True) if victim.running else None)
        return victim.name

    def take_snapshot(self) -> str:
        victim = self._victim()
        if victim is None or victim.up.store.busy:
            return ""
        victim.up.replica.compact()
        return victim.name

    def slow_disk(self) -> str:
        victim = self.rng.choice(self.world.present)
        disk = victim.disk
        disk.slow_s = self.rng.choice((0.005, 0.05, 0.3))

        def fast() -> None:
            disk.slow_s = 0.0
        self.later((0.2, 1.5), fast)
        return f"{victim.name} {disk.slow_s} s"

    def fail_fsync(self) -> str:
        victim = self._victim()
        if victim is None:
            return ""
        rng, disk = self.rng, victim.disk
        operation, code = rng.choice(FAILURES)
        disk.fail_next(operation, code, times=rng.choice((1, 1, 1, 3)), reaching=rng.choice((0.0, 0.0, 0.5)))
        if rng.random() < 0.3:
            self.later((0.1, 1.5), disk.drop_caches)
        return f"{victim.name} {operation} {errno.errorcode[code]}"

    def fill_disk(self) -> str:
        victim = self._victim()
        if victim is None:
            return ""
        disk = victim.disk
        disk.free_bytes = self.rng.choice((0, 3000))

        def free() -> None:
            disk.free_bytes = None
        self.later((0.2, 1.5), free)
        return victim.name

    def fill_disks(self) -> str:
        """Fill the disks of several nodes, perhaps of all."""
        present = self.world.present
        victims = self.rng.sample(present, self.rng.randrange(1, len(present) + 1))
        for victim in victims:
            victim.disk.free_bytes = self.rng.choice((0, 0, 500, 3000, 10_000))

        def free() -> None:
            for victim in victims:
                victim.disk.free_bytes = None
        self.later((0.5, 4.0), free)
        return " ".join(victim.name for victim in victims)

    # Losses that only a minority survives

    def _loser(self) -> SimNode | None:
        """Return a voter to lose; enough sound ones remain to admit the others again, whatever is decided.

        A node that does not know of further voters yet counts only those that it knows.
        """
        world = self.world
        voters = [world.nodes[name] for name in world.voters]
        pending = any(
            configuration == world.checks.model.configuration and name in world.voters
            for name, configuration in world.removals
        )
        forgettable = all(world.expendable(name) for name in world.checks.configurations.left)
        today = world.checks.model.configuration
        known = all(node.running and node.machine.membership.configuration == today for node in voters)
        sound = [node for node in voters if node.sound]
        if not sound or 2 * (len(sound) - 1 - pending) <= len(voters) - pending or not forgettable:
            return None
        if today and not known:
            return None
        return self.rng.choice(sound)

    def wipe(self) -> str:
        victim = self._loser()
        if victim is None:
            return ""
        victim.crash(power=True)
        victim.wipe()
        self.world.start_later(victim)
        return victim.name

    def damage(self) -> str:
        victim = self._loser()
        if victim is None:
            return ""
        victim.crash(power=True)
        what = victim.disk.damage(self.rng)
        victim.damaged = bool(what)
        self.world.start_later(victim)
        return f"{victim.name}: {what}" if what else ""

    def damage_pages(self) -> str:
        """Damage a few files of pages, which the next process needs or not."""
        victim = self._loser()
        if victim is None:
            return ""
        if not victim.disk.has_pages:
            if victim.running and not victim.up.store.busy:
                victim.up.replica.compact()         # then it has some when the next fault of this kind comes
            return ""
        victim.crash(power=True)
        what = victim.disk.damage_pages(self.rng)
        victim.damaged = bool(what)
        self.world.start_later(victim)
        return f"{victim.name}: {what}" if what else ""


    # Mistakes of people

    def older_copy(self) -> str:
        """Puts an older copy of a node's files back, at any moment: also while the leader dies.

        The node asks the others what it may have forgotten, and waits for them for limits.REENTRY_S; where they cannot
        be asked for longer, a majority may have lost an entry, which no rule can make good. So soon after that all
        others run and nothing is wrong for a while.
        """
        world = self.world
        victims = [
            node for node in world.present
            if node.copy is not None and node.sound and node.running
            and node.up.journal.durable_index > node.copy[0]
        ]
        if not victims or self._loser() is None:
            return ""
        victim = self.rng.choice(victims)
        assert victim.copy is not None
        last, copies = victim.copy
        leader = world.serving()
        if leader is not None and self.rng.random() < LEADER_DIES:
            if self.rng.random() < 0.5:
                self._die(leader)
            else:
                self.later(STARTED_S, lambda: self._die(leader))
        victim.crash(power=True)
        victim.put_back(copies)
        self.later(STARTED_S, victim.start)
        world.calm_until = max(world.calm_until, world.events.now + TOLD_S[1] + CALM_S)
        self.later(TOLD_S, lambda: self.calm(CALM_S))
        return f"{victim.name}, up to entry {last}"

    def _die(self, node: SimNode) -> None:
        if node.running:
            node.crash(power=True)
            self.world.start_later(node)

    def _copy_files(self) -> None:
        """Copy the files of nodes, for a later return to them."""
        for node in self.world.members:
            if node.running and node.sound and node.copy is None:
                node.copy = node.up.journal.durable_index, node.disk.copied()

    def calm(self, seconds: float) -> None:
        """Return whether nothing has been wrong for this long."""
        self.world.network.repair()
        for node in self.world.nodes.values():
            node.disk.trouble_free()
            node.resume()
        for node in self.world.members:
            node.start()
        self.world.calm_until = self.world.events.now + seconds

    def twin(self) -> str:
        """Let a second process with the name of a node keep dialing the others, until the end of the run."""
        victim = self._victim()
        if victim is None or victim in self._twins:
            return ""
        self._twins.append(victim)
        Twin(self.world, victim.name).dial()
        return victim.name


KINDS: dict[str, Callable[[Faults], str]] = {
    "connection lost": Faults.lose_connection,
    "partition": Faults.partition,
    "one-way": Faults.one_way,
    "half-open": Faults.end_one_side,
    "bridge": Faults.bridge,
    "isolated leader": Faults.isolate_leader,
    "random cuts": Faults.random_cuts,
    "slow link": Faults.slow_link,
    "narrow link": Faults.narrow_link,
    "deposed leader": Faults.depose_leader,
    "crash": Faults.crash,
    "power loss": Faults.lose_power,
    "crash at a step": Faults.crash_at_step,
    "pause": Faults.pause,
    "clock jump": Faults.jump_clock,
    "offline": Faults.switch_offline,
    "snapshot": Faults.take_snapshot,
    "slow disk": Faults.slow_disk,
    "failed fsync": Faults.fail_fsync,
    "full disk": Faults.fill_disk,
    "full disks": Faults.fill_disks,
    "damage": Faults.damage,
    "damaged pages": Faults.damage_pages,
    "wiped disk": Faults.wipe,
    "older copy": Faults.older_copy,
    "twin": Faults.twin,
    **CHANGES,
}
