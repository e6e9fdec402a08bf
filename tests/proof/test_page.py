"""docs/PROOF.md says what is in proof/."""

from __future__ import annotations

from pathlib import Path

from tests.proof.page import BEGIN, END, PAGE, RESULTS, tables, write
from tests.proof.peers import results as peers
from tests.proof.peers.faults import Strike
from tests.proof.results import FAILED, VOID, Episode, Piece, note


def piece(*episodes: Episode) -> Piece:
    return Piece("2026-11-30", "sockpqd 1.0.0", "c0ffee" * 6, {}, "Linux", 7, 30.0, list(episodes))


def test_tables_have_sums_and_say_what_did_not_pass() -> None:
    good = Episode(1, 11, 3, (), seconds=1800.0, commands=1000, acknowledged=900, faults={"kill": 2, "halves": 1})
    bad = Episode(2, 12, 5, ("paged",), FAILED, violations=("lost: q1\nand more",), faults={"kill": 1})
    void = Episode(3, 13, 3, (), VOID, "not empty")
    text = tables([piece(good, bad), piece(void)])
    assert "2 pieces, 3 episodes, 0.5 hours, 1,000 commands" in text
    assert "failed: 1 episode; void: 1." in text
    assert "1 piece, 1 episode, " in tables([piece(good)])
    assert "| kill | 3 |" in text
    assert "| halves | 1 |" in text
    assert "pause" not in text
    assert "episode 2 (12): failed: lost: q1\n" in text
    assert "episode 3 (13): void: not empty" in text
    assert "No episode failed" in tables([piece(good)])


def test_of_many_violations_the_first_are_shown() -> None:
    bad = Episode(2, 12, 5, (), FAILED, violations=tuple(f"lost: q{number}" for number in range(9)))
    assert "failed: lost: q0; lost: q1; lost: q2; and 6 more\n" in tables([piece(bad)]) + "\n"


def test_only_what_is_between_the_marks_is_written(tmp_path: Path) -> None:
    page = tmp_path / "PROOF.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    note(tmp_path / "proof", piece(Episode(1, 11, 3, ())))
    assert write(page, tmp_path / "proof")
    text = page.read_text()
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| 2026-11-30 |" in text
    assert not write(page, tmp_path / "proof")


def test_runs_of_other_systems_have_a_table_and_tell_what_was_lost() -> None:
    sound = peers.Episode(1, 21, confirmed=1000, strikes=[Strike("kill", 0.0), Strike("kill", 9.0)], gap_s=1.25)
    losing = peers.Episode(2, 22, confirmed=500, lost=["a", "b"], doubled=["c"], strikes=[Strike("bit flips", 0.0)])
    void = peers.Episode(3, 23, "it did not start\nand more")
    run = peers.Run("2026-11-30", "Rabbit 4", "Linux", 7, 10.0, [sound, losing, void])
    lines = list(peers.table([run]))
    assert lines[2] == "| 2026-11-30 | Rabbit 4 | 7 | 10 | 3 | 1 | 3 | 1,500 | 0 | 2 | 1 | 1.2 |"
    assert lines[4] == "* Rabbit 4, seed 7, episode 2: 2 jobs lost. Faults: bit flips (1)"
    assert lines[5] == "* Rabbit 4, seed 7, episode 3: void: it did not start. Faults: none"


def test_the_page_has_the_published_results(tmp_path: Path) -> None:
    copy = tmp_path / "PROOF.md"
    copy.write_text(PAGE.read_text())
    assert not write(copy, RESULTS), "python -m tests.proof.page writes them"
