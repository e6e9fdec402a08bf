"""Torn files are repaired, damaged ones are refused, and the two are never mistaken for each other."""

from __future__ import annotations

import os
import random
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from sockpqd.cluster.journal import journal_format
from sockpqd.cluster.journal.journal import Journal, JournalDamaged, JournalTooNew
from tests.cluster.helpers.faulty_disk import FaultyDisk

DIRECTORY = Path("/journal")
FIRST = DIRECTORY / "journal-00000001"
SEGMENT_BYTES = 1 << 14
SEED = int(os.environ.get("SOCKPQ_SEED", "20240611"))

State = tuple[list[tuple[bytes, int, int]], int, str | None, bool]


def open_journal(disk: FaultyDisk, segment_bytes: int = SEGMENT_BYTES) -> Journal:
    return Journal.open(DIRECTORY, disk, segment_bytes=segment_bytes)


def state_of(journal: Journal) -> State:
    return list(journal[:]), journal.getCurrentTerm(), journal.getVotedForNodeId(), journal.voter


def reopened(disk: FaultyDisk) -> State:
    journal = open_journal(disk)
    state = state_of(journal)
    # What was repaired must also take new entries, and keep them.
    journal.add(b"next", journal.last_index + 1, journal.last_term)
    journal.sync()
    journal.close()
    journal = open_journal(disk)
    assert state_of(journal)[0] == [*state[0], (b"next", len(state[0]) + 1, state[0][-1][2] if state[0] else 0)]
    journal.close()
    return state


def one_bit(length: int, position: int) -> bytes:
    data = bytearray(length)
    data[position] = 0x10
    return bytes(data)


def small(journal: Journal) -> None:
    journal.add(b"hello", 3, 1)


def vote(journal: Journal) -> None:
    journal.setCurrentTerm(7, "n2")
    journal.set_voter()


def several_sectors(journal: Journal) -> None:
    journal.add(random.Random(1).randbytes(1400), 3, 1)
    journal.add(b"x" * 500, 4, 1)


def zero_bodies(journal: Journal) -> None:
    journal.add(bytes(1500), 3, 1)
    for index in range(4, 12):
        journal.add(bytes(100), index, 1)


def sparse_bodies(journal: Journal) -> None:
    journal.add(one_bit(2100, 700), 3, 1)
    journal.add(random.Random(2).randbytes(300), 4, 1)


LAST_FRAMES: list[Callable[[Journal], None]] = [small, vote, several_sectors, zero_bodies, sparse_bodies]


def written(last: Callable[[Journal], None]) -> tuple[FaultyDisk, State, State, int, int]:
    """Return a disk whose journal ends with the frame that `last` makes: state before and after it, and where it lies.
    """
    disk = FaultyDisk()
    journal = open_journal(disk)
    journal.add(b"\x01", 1, 0)
    journal.sync()
    journal.add(b"first", 2, 1)
    journal.sync()
    before, start = state_of(journal), journal.segments.position
    last(journal)
    journal.sync()
    behind, end = state_of(journal), journal.segments.position
    journal.close()
    return disk, before, behind, start, end


@pytest.mark.parametrize("last", LAST_FRAMES)
def test_a_write_torn_at_any_byte_leaves_what_was_synced(last: Callable[[Journal], None]) -> None:
    disk, before, behind, start, end = written(last)
    assert reopened(disk.clone()) == behind
    for cut in range(start, end):
        torn = disk.clone()
        torn.file(FIRST)[cut:end] = bytes(end - cut)
        assert reopened(torn) == before, f"cut at byte {cut - start} of {end - start}"


@pytest.mark.parametrize("last", [several_sectors, zero_bodies])
def test_a_write_of_which_any_sectors_are_missing_leaves_what_was_synced(last: Callable[[Journal], None]) -> None:
    disk, before, behind, start, end = written(last)
    sectors = range(start, end, 512)
    for mask in range(1, 1 << len(sectors)):
        torn = disk.clone()
        data = torn.file(FIRST)
        for number, sector in enumerate(sectors):
            if mask >> number & 1:
                data[sector:sector + 512] = bytes(512)
        expected = behind if data == disk.file(FIRST) else before
        assert reopened(torn) == expected, f"sectors {mask:b} of {len(sectors)} missing"


def test_a_cut_that_is_itself_interrupted_at_any_byte_is_done_again() -> None:
    disk, before, _, start, end = written(several_sectors)
    disk.file(FIRST)[end - 300:end] = bytes(300)
    for zeros in range(end - start):
        torn = disk.clone()
        torn.file(FIRST)[start:start + zeros] = bytes(zeros)
        assert reopened(torn) == before, f"{zeros} bytes were zeros again"


def test_a_first_frame_torn_at_any_byte_leaves_a_new_journal() -> None:
    disk = FaultyDisk()
    open_journal(disk).close()
    end = 512
    for cut in range(end):
        torn = disk.clone()
        torn.file(FIRST)[cut:end] = bytes(end - cut)
        del torn.names_now[str(DIRECTORY / "journal-00000002")]     # only made when the first frame is synced
        journal = open_journal(torn)
        assert journal.empty
        assert not journal.voter
        journal.close()


def test_the_first_frame_of_a_later_segment_torn_at_any_byte_is_cut_off() -> None:
    disk = FaultyDisk()
    journal = open_journal(disk, 4096)
    for index in range(1, 4):
        journal.add(bytes([index]) * 900, index, 1)
        journal.sync()
    before = state_of(journal)
    journal.add(b"z" * 900, 4, 1)
    journal.sync()
    end = journal.segments.position
    assert journal.segments.active == 2
    journal.close()
    second = DIRECTORY / "journal-00000002"
    for cut in range(end):
        torn = disk.clone()
        torn.file(second)[cut:end] = bytes(end - cut)
        del torn.names_now[str(DIRECTORY / "journal-00000003")]
        assert reopened(torn) == before


def flip(data: bytearray, rng: random.Random, end: int) -> str:
    offset, bit = rng.randrange(end), rng.randrange(8)
    data[offset] ^= 1 << bit
    return f"bit {bit} at {offset}"


def busy_journal(rng: random.Random, segment_bytes: int) -> tuple[FaultyDisk, State, dict[Path, int]]:
    """Return some segments with frames of all kinds, and where the frames of each segment end."""
    disk = FaultyDisk()
    journal = open_journal(disk, segment_bytes)
    ends: dict[Path, int] = {}
    index = 0
    for turn in range(60):
        for _ in range(rng.randrange(4)):
            index += 1
            body = rng.choice((rng.randbytes(rng.randrange(400)), bytes(rng.randrange(2000)), one_bit(1500, 1100)))
            journal.add(body, index, turn // 10)
        if turn % 13 == 5:
            journal.setCurrentTerm(turn, rng.choice((None, "n1", "n3")))
        if turn == 30:
            journal.set_voter()
        if turn % 17 == 16:
            index -= 2
            journal.deleteEntriesFrom(index)
        journal.sync()
        ends[journal.segments.path(journal.segments.active)] = journal.segments.position
    state = state_of(journal)
    journal.close()
    return disk, state, ends


def test_every_single_flipped_bit_in_written_frames_is_detected() -> None:
    print(f"SOCKPQ_SEED={SEED}")
    rng = random.Random(SEED)
    flips = 0
    for _ in range(4):
        disk, state, ends = busy_journal(rng, 1 << 15)
        assert len(ends) > 1
        image = disk.clone()
        for path, end in ends.items():
            data = image.file(path)
            for _ in range(1 + 1200 * end // sum(ends.values())):
                sound = bytes(data)
                where = flip(data, rng, end)
                with pytest.raises(JournalDamaged) as refused:
                    open_journal(image).close()
                assert str(path) in str(refused.value), where
                assert re.search(r"at offset \d+", str(refused.value))
                data[:] = sound
                flips += 1
        assert reopened(image)[0] == state[0]
    assert flips >= 4800


def test_every_bit_of_a_last_frame_is_detected() -> None:
    disk, _, _, start, end = written(sparse_bodies)
    data = disk.file(FIRST)
    for position in range(start * 8, end * 8):
        data[position // 8] ^= 1 << position % 8
        with pytest.raises(JournalDamaged, match=f"offset {start}:"):
            open_journal(disk).close()
        data[position // 8] ^= 1 << position % 8


def test_a_bit_in_space_never_written_is_harmless_or_refused() -> None:
    disk, _, behind, _, end = written(small)
    rng = random.Random(SEED)
    for _ in range(100):
        flipped = disk.clone()
        data = flipped.file(FIRST)
        data[end + rng.randrange(len(data) - end)] ^= 1 << rng.randrange(8)
        assert reopened(flipped) == behind


def test_an_unsound_frame_before_a_sound_one_is_damage_even_when_it_looks_torn() -> None:
    disk = FaultyDisk()
    journal = open_journal(disk)
    places = []
    for index in range(1, 6):
        places.append(journal.segments.position)
        journal.add(random.Random(index).randbytes(1000), index, 1)
        journal.sync()
    journal.close()
    for start, sector in [(place, sector) for place in places[:-1] for sector in range(3)]:
        damaged = disk.clone()
        damaged.file(FIRST)[start + 512 * sector:start + 512 * sector + 512] = bytes(512)
        with pytest.raises(JournalDamaged, match=f"{FIRST} is damaged at offset {start}:"):
            open_journal(damaged)


def test_frames_lost_before_a_later_segment_are_damage() -> None:
    disk, _, ends = busy_journal(random.Random(3), 1 << 14)
    for path, end in list(ends.items())[:-1]:
        damaged = disk.clone()
        damaged.file(path)[end - 512:end] = bytes(512)
        with pytest.raises(JournalDamaged, match=r"damaged at offset \d+: .*frame \d+"):
            open_journal(damaged)


def test_a_file_cut_short_at_any_sector_is_damage() -> None:
    disk, _, _, _, end = written(several_sectors)
    for length in range(0, SEGMENT_BYTES, 512 if end else 0):
        damaged = disk.clone()
        del damaged.file(FIRST)[length:]
        with pytest.raises(JournalDamaged):
            open_journal(damaged)


def test_a_missing_segment_is_damage_wherever_it_is() -> None:
    disk, _, ends = busy_journal(random.Random(4), 1 << 14)
    assert len(ends) > 2
    for path in ends:
        damaged = disk.clone()
        damaged.unlink(path)
        with pytest.raises(JournalDamaged):
            open_journal(damaged)


def test_segments_that_changed_places_are_damage() -> None:
    disk, _, ends = busy_journal(random.Random(5), 1 << 14)
    one, two, three = list(ends)[:3]
    for first, second in ((one, two), (two, three)):
        damaged = disk.clone()
        names = damaged.names_now
        names[str(first)], names[str(second)] = names[str(second)], names[str(first)]
        with pytest.raises(JournalDamaged):
            open_journal(damaged)


def test_a_segment_of_another_journal_is_damage() -> None:
    disk, _, ends = busy_journal(random.Random(6), 1 << 14)
    path = list(ends)[1]
    other = FaultyDisk()
    other.random_bytes = lambda count: b"another!"  # type: ignore[method-assign]
    open_journal(other, 1 << 14).close()
    frame = other.file(FIRST)[:512]
    disk.file(path)[:512] = frame
    with pytest.raises(JournalDamaged, match="another journal"):
        open_journal(disk)


def test_a_job_that_is_a_copy_of_the_journal_does_not_look_like_a_later_frame() -> None:
    disk, _, _, start, _ = written(small)
    journal = open_journal(disk)
    copy = bytes(disk.file(FIRST)[:start])
    before = state_of(journal)
    # Without the 12 bytes the copied frames would not lie at the start of sectors.
    position = journal.segments.position
    head = journal_format.HEADER.size + journal_format.RECORD.size
    journal.add(bytes(512 - head) + copy, 4, 1)
    journal.sync()
    end = journal.segments.position
    journal.close()
    disk.file(FIRST)[position:position + 512] = bytes(512)
    disk.file(FIRST)[end - 512:end] = bytes(512)
    assert journal_format.MAGIC in disk.file(FIRST)[position:]
    assert reopened(disk) == before


def test_a_newer_format_is_refused() -> None:
    disk, _, _, start, _ = written(small)
    data = disk.file(FIRST)
    header = bytearray(data[start:start + journal_format.HEADER.size])
    header[4:6] = (journal_format.VERSION + 1).to_bytes(2, "little")
    header[56:60] = journal_format.crc32(bytes(header[:56])).to_bytes(4, "little")
    data[start:start + journal_format.HEADER.size] = header
    with pytest.raises(JournalTooNew, match="has format 2; this version of sockpqd reads formats up to 1"):
        open_journal(disk)


def test_a_flipped_bit_in_an_old_entry_is_detected_when_it_is_read() -> None:
    disk = FaultyDisk()
    journal = Journal.open(DIRECTORY, disk, segment_bytes=SEGMENT_BYTES, window_bytes=2000)
    for index in range(1, 30):
        journal.add(b"%030d" % index, index, 1)
        journal.sync()
    place = journal._table.location(5)
    disk.file(FIRST)[place.offset + 7] ^= 4
    with pytest.raises(JournalDamaged, match=f"{FIRST} is damaged at offset {place.offset}: entry 5"):
        journal.entry(5)
    assert journal.entry(6)[0] == b"%030d" % 6
    journal.close()
