"""A digest has no words, so that names may change, and everything else, so that nothing else may."""

from __future__ import annotations

import functools
import itertools
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from sockpqd.cluster.wire.messages import Ack
from sockpqd.core import Accepted, Done, Empty, Finished, Handed, Meta, NotFound, Put, Reply, Stored
from tests.sim import __main__, campaign
from tests.sim.faults.kinds import KINDS
from tests.sim.oracles.checks import Checks
from tests.sim.world.digest_codes import FAULTS, OUTCOMES, REPLIES
from tests.sim.world.events import Events
from tests.sim.world.network import Network
from tests.sim.world.trace import Trace, Violation

ROOT = Path(__file__).parents[2]
PRODUCT = ("sockpqd.core.", "sockpqd.cluster.")
SEEDS = (3, 15, 20)             # damage that is refused, failing disks, operators' commands
SEED = 3
PUT = Put("q", 0, b"x")
LATER_S = 1e-6
MESSAGE = 50                    # the one that is sent in another way

digest_of = functools.cache(campaign.digest)        # of the product as it is


def rename_the_product() -> int:
    """Give all classes other names, reprs and texts of errors, for good; returns how many there are."""
    classes: list[Any] = [
        thing for name, module in list(sys.modules.items()) if f"{name}.".startswith(PRODUCT)
        for thing in vars(module).values() if isinstance(thing, type) and thing.__module__ == name
    ]
    for number, thing in enumerate(classes):
        thing.__module__, thing.__name__, thing.__qualname__ = "elsewhere", f"Renamed{number}", f"Renamed{number}"
        thing.__repr__ = lambda self: "other words"
        if issubclass(thing, Exception):
            thing.__str__ = thing.__repr__
    return len(classes)


PROGRAM = """
import sys
from tests.sim import campaign
from tests.sim.test_digest import rename_the_product
from sockpqd.core import Stored

assert rename_the_product() > 100 and repr(Stored()) == "other words"
print(*campaign.digests(map(int, sys.argv[1:])))
"""


def test_a_digest_has_no_words() -> None:
    arguments = [sys.executable, "-c", PROGRAM, *map(str, SEEDS)]
    renamed = subprocess.run(arguments, cwd=ROOT, capture_output=True, text=True, check=True)
    assert renamed.stdout.split() == list(map(digest_of, SEEDS))


Transmit = Callable[..., None]


def transmit_later(transmit: Transmit, network: Network, sender: str, receiver: str, message: Any, s: float) -> None:
    transmit(network, sender, receiver, message, s + LATER_S)


def transmit_nothing(transmit: Transmit, network: Network, sender: str, receiver: str, message: Any, s: float) -> None:
    pass


def transmit_twice(transmit: Transmit, network: Network, sender: str, receiver: str, message: Any, s: float) -> None:
    transmit(network, sender, receiver, message, s)
    transmit(network, sender, receiver, message, s)


def transmit_another(transmit: Transmit, network: Network, sender: str, receiver: str, message: Any, s: float) -> None:
    transmit(network, sender, receiver, replace(message, sent=message.sent + LATER_S), s)


@pytest.mark.parametrize("way", [transmit_later, transmit_nothing, transmit_twice, transmit_another])
def test_a_digest_has_each_message(way: Callable[..., None], monkeypatch: pytest.MonkeyPatch) -> None:
    before, transmit, counted = digest_of(SEED), Network.transmit, itertools.count()

    def changed(self: Network, sender: str, receiver: str, message: Any, wait_s: float) -> None:
        if isinstance(message, Ack) and next(counted) == MESSAGE:
            way(transmit, self, sender, receiver, message, wait_s)
        else:
            transmit(self, sender, receiver, message, wait_s)
    monkeypatch.setattr(Network, "transmit", changed)
    assert campaign.digest(SEED) != before
    assert next(counted) > MESSAGE


ENTRY = ("n1", 5, 1000, 7, [PUT], [Stored()])


@pytest.mark.parametrize(
    "entry", [
        ("n2", 5, 1000, 7, [PUT], [Stored()]),
        ("n1", 6, 1000, 7, [PUT], [Stored()]),
        ("n1", 5, 1001, 7, [PUT], [Stored()]),
        ("n1", 5, 1000, 8, [PUT], [Stored()]),
        ("n1", 5, 1000, 7, [Put("q", 1, b"x")], [Stored()]),
        ("n1", 5, 1000, 7, [PUT, PUT], [Stored()]),
        ("n1", 5, 1000, 7, [PUT], [Accepted()]),
        ("n1", 5, 1000, 7, [PUT], [Stored("i")]),
        ("n1", 5, 1000, 7, [PUT], []),
    ],
)
def test_a_digest_has_each_applied_entry(entry: tuple[Any, ...]) -> None:
    def digest(*applied: Any) -> str:
        trace = Trace(Events(), digesting=True)
        trace.entry(*applied)
        return trace.digest()
    assert digest(*entry) != digest(*ENTRY) == digest(*ENTRY)


def test_an_entry_that_a_node_applies_differently_is_in_the_digest() -> None:
    def digest(reply: Reply) -> str:
        trace = Trace(Events(), digesting=True)
        with pytest.raises(Violation, match="right is"):
            Checks(trace, ("n1",)).applied("n1", 2, 1, 7, [Done(1)], [reply])
        return trace.digest()
    assert len({digest(reply) for reply in (Finished(), Finished(True), Finished(False, True), Accepted())}) == 4


@pytest.mark.parametrize(
    ("one", "other"), [
        (NotFound(), Accepted()),           # which look the same without their names
        (Empty(True), Empty(False)),
        (Handed(1, "q", 0, b"x"), Handed(1, "q", 0, b"x", meta=Meta(None, 1, None, None))),
        (Stored(), None),
    ],
)
def test_a_digest_has_each_answer(one: Reply, other: Reply | None) -> None:
    def digest(reply: Reply | None, state: str = "applied") -> str:
        trace = Trace(Events(), digesting=True)
        trace.answer(state, PUT, reply)
        return trace.digest()
    assert digest(one) != digest(other)
    assert digest(None, "lost") != digest(None, "refused")


def test_a_digest_has_the_time_of_everything() -> None:
    def digest(at: float) -> str:
        events = Events()
        trace = Trace(events, digesting=True)
        events.run_until(at)
        trace.state("n1", 16, b"state")
        return trace.digest()
    assert digest(1.0) != digest(1.0 + LATER_S)


def test_everything_has_a_number_of_its_own() -> None:
    assert set(REPLIES) == {*get_args(Reply), Meta}
    assert set(FAULTS) == {*KINDS, "script"}
    for numbers in (REPLIES.values(), FAULTS.values(), OUTCOMES.values()):
        assert len(set(numbers)) == len(numbers)


# The command

ASKED = ("--first", "1", "--seeds", "3")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("written") / "digests"
    assert __main__.main([*ASKED, "--digests", str(path)]) == 0
    return path


def test_digests_are_written(written: Path) -> None:
    lines = [f"{seed} {digest_of(seed)}" for seed in (1, 2, 3)]
    assert written.read_text().splitlines() == lines


def test_several_processes_write_the_same(written: Path, tmp_path: Path) -> None:
    assert __main__.main([*ASKED, "--jobs", "2", "--digests", str(tmp_path / "others")]) == 0
    assert (tmp_path / "others").read_text() == written.read_text()


def test_equal_digests(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["--first", "2", "--seeds", "2", "--compare", str(written)]) == 0
    assert f"2 digests, of the 3 in {written}, are the same" in capsys.readouterr().out


def test_the_first_difference_is_told(written: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first, *rest = written.read_text().splitlines()
    others = tmp_path / "others"
    others.write_text("\n".join([first, *(f"{line.split()[0]} {'0' * 32}" for line in rest)]))
    assert __main__.main([*ASKED, "--compare", str(others)]) == 1
    told = capsys.readouterr().out
    assert f"seed 2 differs: its digest is {digest_of(2)}, and {'0' * 32} in" in told
    assert "seed 3" not in told


def test_a_seed_that_was_not_written(written: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert __main__.main(["--first", "3", "--seeds", "2", "--compare", str(written)]) == 1
    assert "has no digest of seed 4" in capsys.readouterr().out
