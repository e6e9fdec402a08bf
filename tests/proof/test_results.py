"""The results of the proof: evidence that can be judged again, and forged evidence that is found out."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.chaos.beanstalkd.deeds import Deed, Deeds
from tests.chaos.histories.simulated import Knobs
from tests.chaos.histories.simulated_clients import true_history
from tests.chaos.workload.history import Done, Finished, History, Outcome, Put, Record
from tests.proof.judge import main, violations
from tests.proof.mixture import Round
from tests.proof.results import Episode, Evidence, Piece, count, lines_of, load, note, read, save

CALM = Knobs(lost=0, failover_s=0, seconds=4.0)
Forgery = Callable[[Evidence], None]


def evidence_of_a_true_history() -> Evidence:
    history, facts = true_history(1, CALM)
    deed = Deed(client="c", via="n1", connection=1, verb="put", start_ns=1, end_ns=2, answer="INSERTED", job=1,
                body="b", tubes=("t",), ttr_s=60)
    deeds = Deeds()
    deeds.deeds.append(deed)
    deeds.deeds.append(replace(deed, verb="reserve", start_ns=3, end_ns=4, answer="RESERVED"))
    deeds.deeds.append(replace(deed, verb="delete", start_ns=5, end_ns=6, answer="DELETED"))
    deeds.ended[1] = 7
    return Evidence(history, deeds, [Round(1.5, "kill", "halves", 2.0, "n1 is dead")], facts)


def first(evidence: Evidence, command: type) -> int:
    """The place of the first such command that was acknowledged and found its job."""
    return next(at for at, record in enumerate(evidence.history.records)
                if isinstance(record.command, command) and record.outcome is Outcome.OK and not record.missing)


def lose_a_job(evidence: Evidence) -> None:
    """Delete the hand-out of a job that was put."""
    records = evidence.history.records
    put = records[first(evidence, Put)].command
    assert isinstance(put, Put)
    records[:] = [record for record in records if record.handed is None or record.handed.body != put.body]


def double_a_job(evidence: Evidence) -> None:
    """Let a client receive, and end, a job that was done long ago."""
    records, last = evidence.history.records, max(record.end_ns or 0 for record in evidence.history.records)
    done = records[first(evidence, Done)]
    assert isinstance(done.command, Done)
    got = next(record for record in records if record.handed and record.handed.id == done.command.id)
    assert got.handed
    number = 10_000_000
    records += [
        Record("x", got.command, last + 1, last + 2, Outcome.OK, handed=replace(got.handed, id=number)),
        Record("x", Done(number), last + 3, last + 4, Outcome.OK, finished=Finished(False, False)),
    ]


def delete_twice(evidence: Evidence) -> None:
    """Let a job of a client of beanstalkd come back after its end."""
    deed = evidence.deeds.deeds[1]
    evidence.deeds.deeds.append(replace(deed, client="d", connection=2, start_ns=10, end_ns=11))


def test_evidence_is_read_as_it_was_written(tmp_path: Path) -> None:
    evidence = evidence_of_a_true_history()
    path = tmp_path / "001-1.xz"
    digest = save(path, lines_of(evidence), publish=True)
    again = load(path)
    assert again.history.records == evidence.history.records
    assert again.history.cuts == evidence.history.cuts
    assert (again.deeds.deeds, again.deeds.ended) == (evidence.deeds.deeds, evidence.deeds.ended)
    assert (again.rounds, again.facts) == (evidence.rounds, evidence.facts)
    assert save(tmp_path / "none", lines_of(again), publish=False) == digest
    assert not (tmp_path / "none").exists()


def test_nothing_is_wrong_in_true_evidence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    save(tmp_path / "true.xz", lines_of(evidence_of_a_true_history()), publish=True)
    assert main([tmp_path / "true.xz"]) == 0
    assert "0 violations" in capsys.readouterr().out


@pytest.mark.parametrize(("forge", "rule"), [
    (lose_a_job, "order"), (double_a_job, "done"), (delete_twice, "beanstalkd deleted"),
], ids=lambda one: getattr(one, "__name__", one))
def test_forged_evidence_is_found_out(forge: Forgery, rule: str, tmp_path: Path) -> None:
    evidence = evidence_of_a_true_history()
    forge(evidence)
    save(tmp_path / "forged.xz", lines_of(evidence), publish=True)
    assert rule in {one.rule for one in violations(load(tmp_path / "forged.xz"))}
    assert main([tmp_path / "forged.xz"]) == 1


def test_pieces_are_kept_one_a_line(tmp_path: Path) -> None:
    history = History()
    history.records += evidence_of_a_true_history().history.records
    evidence = Evidence(history, Deeds(), [Round(0.0, "kill", evidence="n1 is dead"), Round(3.0, "kill")], None)
    episode = Episode(1, 4711, 3, ("clocks",))
    count(episode, evidence)
    assert (episode.commands, episode.faults) == (len(history.records), {"kill": 1})
    assert episode.acknowledged + episode.refused + episode.unknown == episode.commands
    piece = Piece("2026-11-30", "sockpqd 1.0.0", "c0ffee", {"a.whl": "0" * 64}, "Linux", 7, 30.0, [episode])
    note(tmp_path / "proof", replace(piece, episodes=[]))
    note(tmp_path / "proof", piece)
    note(tmp_path / "proof", replace(piece, seed=8))
    assert read(tmp_path / "proof") == [piece, replace(piece, seed=8)]
    assert read(tmp_path / "nothing") == []
    assert piece.faults["kill"] == 1
    assert (piece.verdicts("passed"), piece.verdicts("failed")) == (1, 0)
