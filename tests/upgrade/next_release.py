"""A release that follows: this one with what feature level 3 may bring, of each kind.

    python -m tests.upgrade.next_release sockpqd --config FILE
    python -m tests.upgrade.next_release sim SEEDS              simulated upgrades; a line of JSON says what happened

It runs this tree with edits that are made while modules are imported: the files stay as they are. So the program is
changed where a release would change it, and no line of the product knows of that. Everything else is the same, so this
shows what levels do and not what else a release may change.

    an operation    POKE <queue> counts: 200 OK
    a field         LATER <id> QUIET sends no event
    a snapshot's    its head has the number of pokes, behind all other fields
    a message       nodes send each other their number of pokes, and log those they receive
"""

from __future__ import annotations

import importlib
import json
import sys
from collections.abc import Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any

# What is replaced in each module; each of the texts stands there once.
PRODUCT: dict[str, dict[str, str]] = {
    "sockpqd.core.levels": {
        "FEATURE_LEVEL = 2 ": "FEATURE_LEVEL = 3 ",
        "[tuple[str, str], int] = {}": '[tuple[str, str], int] = {("End", "quiet"): 3}',
    },
    "sockpqd.core.ops.jobs": {
        "    dropped: bool = False\n\n    @property":
            "    dropped: bool = False\n    quiet: bool = False\n\n    @property",
    },
    "sockpqd.core.ops.queues": {
        "\nOnQueues = ": "\nclass Poke(Logged, tag=999, frozen=True):\n    queue: str\n\n\nOnQueues = Poke | ",
    },
    "sockpqd.core.rules.complete": {
        '    if not expired:\n        state.events.tell("LATER"':
            '    if not expired and not options.quiet:\n        state.events.tell("LATER"',
    },
    "sockpqd.core.handlers.queues": {
        "\ndef configure_queue(":
            "\ndef poke(state, operation, seed):\n    state.poked += 1\n    return replies.ACCEPTED\n"
            "\n\ndef configure_queue(",
    },
    "sockpqd.core.handlers.table": {
        "    queue_ops.ConfigureQueue:":
            "    queue_ops.Poke: Handler(queues.poke, cost.on_queue, in_request=True, level=3),\n"
            "    queue_ops.ConfigureQueue:",
    },
    "sockpqd.core.state": {
        '        "put_item",\n': '        "poked",\n        "put_item",\n',
        "        self.next_id = 1\n": "        self.next_id = 1\n        self.poked = 0\n",
    },
    "sockpqd.core.snapshot.frames": {
        "class Head(AnyHead, array_like=True, tag=\"head\", forbid_unknown_fields=True):\n"
        '    """The part of the state that does not grow with the number of jobs."""\n':
            "class Head(AnyHead, array_like=True, tag=\"head\", forbid_unknown_fields=True):\n    poked: Counter = 0\n",
    },
    "sockpqd.core.snapshot.write": {
        "    return frames.Head(\n":
            "    kind, more = (frames.Head, {'poked': state.poked}) if state.level >= 3 else (frames.AnyHead, {})\n"
            "    return kind(\n        **more,\n",
    },
    "sockpqd.core.snapshot.read": {
        "        self.state.level = head.level\n":
            "        self.state.level = head.level\n        self.state.poked = head.poked\n",
    },
    "sockpqd.cluster.wire.messages": {
        "\nMessage = (\n":
            '\nclass Poked(Struct, tag="poked", frozen=True):\n    times: int\n\n\nMessage = (\n    Poked |',
    },
    "sockpqd.cluster.driver": {
        "\nfrom sockpqd.cluster.wire.messages import (\n":
            "\nfrom sockpqd.cluster.wire.messages import Poked\nfrom sockpqd.cluster.wire.messages import (\n",
        "        self.transport.broadcast(self.info())\n":
            "        self.transport.broadcast(self.info())\n"
            "        for peer in self.peers.values():\n"
            "            if peer.up and peer.info is not None and peer.info.level >= 3:\n"
            "                self.transport.context.send(peer, Poked(self.machine._state.poked))\n",
        "        elif isinstance(event, Notice | Listening | Heard):\n":
            "        elif isinstance(event, Poked):\n"
            "            if event.times > self._pokes:\n"
            "                self._pokes = event.times\n"
            '                log.info("%s was poked, %d in all", name, event.times)\n'
            "        elif isinstance(event, Notice | Listening | Heard):\n",
        '        self._info_at, self._info_sent = float("-inf"), ("", False, False)\n':
            '        self._info_at, self._info_sent = float("-inf"), ("", False, False)\n        self._pokes = 0\n',
    },
    "sockpqd.gateway.protocol.grammar.jobs.ends": {
        '    b"YIELD": Option("yielded"),\n': '    b"YIELD": Option("yielded"),\n    b"QUIET": Option("quiet"),\n',
    },
    "sockpqd.gateway.protocol.grammar.queues": {
        "\ndef queue_create(":
            "\ndef poke(words):\n"
            "    from sockpqd.core.ops.queues import Poke\n"
            "    from sockpqd.gateway.protocol.arguments import ArgumentError, name\n"
            "    if len(words) != 2:\n        raise ArgumentError('POKE takes a queue')\n"
            "    return Command(Poke(name(words[1])))\n\n\ndef queue_create(",
    },
    "sockpqd.gateway.commands.catalog": {
        '    Row(b"KICK",             ends.kick,  ':
            '    Row(b"POKE", queues.poke, may.queue, write.proposed, LOGGED, PLAIN),\n'
            '    Row(b"KICK",             ends.kick,  ',
    },
    "sockpqd.gateway.protocol.responses": {
        '2: (b"feed",)}\n': '2: (b"feed",), 3: (b"poke",)}\n',
    },
}
# The simulation asks for what is new, and its model knows that. No node may be sent what its release does not know.
SIMULATION: dict[str, dict[str, str]] = {
    "tests.sim.world.plan": {
        "        changes.append((dispatch, \"LEVELS\", {Later: NEW_LEVEL}))\n": "        pass\n",
    },
    "tests.sim.faults.operators": {
        '    return f"{node.name} has level {node.known_level}"\n':
            "    world.trace.seen['taken back'] += node.went_back\n"
            '    return f"{node.name} has level {node.known_level}"\n',
    },
    "tests.sim.world.node": {
        "        self.up.inbox.append((sender, event))\n":
            "        if type(event).__name__ == 'Poked':\n"
            "            if self.known_level == 2:\n"
            "                raise Violation(f'{self.name} is sent a message that it does not know')\n"
            "            self.world.trace.seen['pokes heard of'] += event.times > 0\n"
            "        self.up.inbox.append((sender, event))\n",
    },
    "tests.sim.world.observed": {
        "        applied = super().apply(index, now_ms, seed, operations)\n":
            "        applied = super().apply(index, now_ms, seed, operations)\n"
            "        for one in operations:\n"
            "            one = getattr(one, 'operation', one)\n"
            "            self._node.world.trace.seen['pokes'] += type(one).__name__ == 'Poke'\n"
            "            self._node.world.trace.seen['quiet'] += getattr(one, 'quiet', False)\n",
    },
    "tests.sim.clients.random_commands": {
        "        if draw < 0.3:\n            return self._put_with()\n        if draw < 0.52:":
            "        if self._rng.random() < 0.1:\n"
            "            from sockpqd.core.ops.queues import Poke\n"
            "            return Poke('a')\n"
            "        if draw < 0.3:\n            return self._put_with()\n        if draw < 0.52:",
        "            first=kind > 0.8, yielded=rng.random() < 0.3,\n":
            "            first=kind > 0.8, yielded=rng.random() < 0.3, quiet=rng.random() < 0.5,\n",
        "            ids, How.LATER, first=True,\n": "            ids, How.LATER, first=True, quiet=True,\n",
        "lambda: Later(client.release())": "lambda: End(client.release(), How.LATER, quiet=True)",
    },
    "tests.core.model.model": {
        "            case Kick():\n":
            "            case _ if type(operation).__name__ == 'Poke':\n"
            "                return Accepted()\n"
            "            case Kick():\n",
    },
    "tests.core.model.end": {
        '        self.tell("LATER", ': '        later.quiet or self.tell("LATER", ',
    },
}

# What runs of it have in common: three nodes, and clients that use everything.
UPGRADES = {
    "upgraded": True, "nodes": 3, "spares": 0, "extended": 0.8, "sessions": 0.4, "grouped": False, "fault_s": 0.3,
    "operations": 250, "trouble_s": 6.0,
    "weights": {"other release": 4.0, "crash": 1.0, "snapshot": 1.0, "connection lost": 1.0, "transfer": 1.0},
}


class EditedSource(SourceFileLoader):
    """Loads a module whose source is changed."""

    def __init__(self, name: str, path: str, edits: dict[str, str]) -> None:
        super().__init__(name, path)
        self._edits = edits

    def get_code(self, fullname: str) -> CodeType:
        """Compile the edited source; the cached bytecode belongs to the unedited file."""
        text = self.get_data(self.path).decode()
        for old, new in self._edits.items():
            assert text.count(old) == 1, f"{fullname} has changed: where would a release write this now? {old!r}"
            text = text.replace(old, new)
        code = compile(text, self.path, "exec", dont_inherit=True)
        assert isinstance(code, CodeType)
        return code


class Edited(MetaPathFinder):
    """Finds the modules that are changed."""

    def __init__(self, edits: dict[str, dict[str, str]]) -> None:
        self._edits = edits

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None,
    ) -> ModuleSpec | None:
        """Implement MetaPathFinder."""
        spec = PathFinder.find_spec(fullname, path, target) if fullname in self._edits else None
        if spec is not None:
            assert spec.origin is not None
            spec.loader = EditedSource(fullname, spec.origin, self._edits[fullname])
        return spec


def become(edits: dict[str, dict[str, str]]) -> None:
    """Make this process the next release; modules that were imported before are imported again."""
    packages = {name.partition(".")[0] for name in edits}
    for name in [name for name in sys.modules if name.partition(".")[0] in packages and name != __name__]:
        del sys.modules[name]
    sys.meta_path.insert(0, Edited(edits))


def sockpqd() -> Any:
    """Run the program as its console script does, with the arguments after its name."""
    become(PRODUCT)
    del sys.argv[0]
    return importlib.import_module("sockpqd.gateway.main").main()


def sim(seeds: int) -> None:
    """Run simulated clusters that are upgraded, and taken back."""
    become(PRODUCT | SIMULATION)
    campaign = importlib.import_module("tests.sim.campaign")
    *_, report = campaign.run(range(seeds), **UPGRADES)
    print(json.dumps({"failures": report.failures, "seen": report.seen, "core_s": report.core_s}))


if __name__ == "__main__":
    if sys.argv[1] == "sim":
        sim(int(sys.argv[2]))
    else:
        sys.exit(sockpqd())
