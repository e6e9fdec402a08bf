"""Files and messages of a release mean the same to every later one.

`data/formats/` has the formats of each release (formats.py). A later program may know more: further operations and
messages, further fields at the end of messages, all of them of a higher feature level (core/levels.py).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, get_args

import msgspec
import pytest

from sockpqd.cluster.damage.rejoin import RejoinRecord
from sockpqd.cluster.journal import journal_format
from sockpqd.cluster.wire import framing, messages
from sockpqd.core import FIRST_LEVEL, decode_operation, encode_operation
from sockpqd.core.levels import FIELD_LEVELS
from sockpqd.core.ops.entry import ENTRY_FORMAT, Operation
from sockpqd.core.snapshot.write import FORMAT
from sockpqd.gateway.beanstalkd import remote
from tests.upgrade.formats import (
    FORMATS,
    FRAMED,
    FRAMED_TIMES,
    JOURNAL_ID,
    KINDS,
    frame,
    frames_of_messages,
    operations,
    samples,
    samples_of_calls,
    samples_of_operations,
    samples_of_outcomes,
)

# The kinds of frames that level 2 added to a snapshot, by their names on disk.
FRAMES = ("region", "mirror", "mirrored", "mirror part", "mirror chunk")
NAMES = sorted(path.stem for path in FORMATS.glob("*.json"))
NEWEST = NAMES[-1]


@pytest.fixture(params=NAMES)
def recorded(request: pytest.FixtureRequest) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FORMATS / f"{request.param}.json").read_text("utf-8"))
    return found


def test_those_of_the_first_level_are_there() -> None:
    assert "level1" in NAMES


def test_the_table_of_formats_has_the_numbers_of_the_first_level() -> None:
    """docs/COMPATIBILITY.md: a later level adds rows or tables, and leaves these."""
    level1 = json.loads((FORMATS / "level1.json").read_text("utf-8"))
    of_calls, of_outcomes = ({tag.split()[0] for tag in level1[part]} for part in ("calls", "outcomes"))
    text = (Path(__file__).parents[2] / "docs" / "COMPATIBILITY.md").read_text("utf-8")
    for row in (
        f"| frame of the journal | {level1['journal version']} | {len(KINDS)} kinds of records |",
        f"| entry of the log | {level1['entry format']} | {len(level1['operations'])} operations, ",
        f"| state in a snapshot | {FORMAT} | ",
        f"| messages between nodes | {level1['wire format']} | {len(level1['messages'])} kinds, ",
        f"| calls between nodes, for clients of beanstalkd | with the messages | {len(of_calls)} kinds of calls, "
        f"{len(of_outcomes - {'failure', 'nothing'})} of outcomes |",
    ):
        assert row in text


def test_the_table_of_level_2_has_what_it_adds() -> None:
    """docs/COMPATIBILITY.md."""
    level1, level2 = (json.loads((FORMATS / f"level{level}.json").read_text("utf-8")) for level in (1, 2))
    text = (Path(__file__).parents[2] / "docs" / "COMPATIBILITY.md").read_text("utf-8")
    added = set(level2["operations"]) - set(level1["operations"])
    assert f"| entry of the log | {len(added)} operations | `formats/` |" in text
    assert f"| state in a snapshot | {len(FRAMES)} kinds of frames | `regions/` |" in text
    same = ("entry format", "wire format", "journal version", "messages", "calls", "outcomes", "frames", "journal")
    assert [part for part in same if level1[part] != level2[part]] == []
    assert {part: {tag: level2[part][tag] for tag in level1[part]} for part in ("operations", "samples")} == {
        part: level1[part] for part in ("operations", "samples")}


def test_no_number_has_changed(recorded: dict[str, Any]) -> None:
    numbers = [recorded[name] for name in ("entry format", "wire format", "journal version")]
    assert numbers == [ENTRY_FORMAT, messages.WIRE_FORMAT, journal_format.VERSION]


def test_each_operation_has_its_tag_and_its_fields_in_their_order(recorded: dict[str, Any]) -> None:
    """Further fields stand behind them, and have a level."""
    today, names = operations(), {kind.__struct_config__.tag: kind.__name__ for kind in get_args(Operation)}
    for tag, fields in recorded["operations"].items():
        found = today[int(tag)]
        assert found[:len(fields)] == fields
        assert [field for field in found[len(fields):] if (names[int(tag)], field) not in FIELD_LEVELS] == []


def test_each_operation_is_written_and_read_as_recorded(recorded: dict[str, Any]) -> None:
    """Further samples may stand between those that were recorded, in the same order."""
    today = samples_of_operations()
    for tag, found in recorded["samples"].items():
        later = iter(today[tag])
        assert [one for one in found.split() if one not in later] == []
        for one in found.split():
            assert encode_operation(decode_operation(bytes.fromhex(one)), FIRST_LEVEL).hex() == one


def test_each_message_is_understood(recorded: dict[str, Any]) -> None:
    for tag, encoded in recorded["messages"].items():
        data = bytes.fromhex(encoded)
        message = messages.decode_hello(data) if tag == "hello" else messages.decode(data)
        again, told = (msgspec.msgpack.decode(one) for one in (messages.encode(message), data))
        assert {field: again[field] for field in told} == told


def test_each_call_of_another_node_is_understood(recorded: dict[str, Any]) -> None:
    """Its bytes are the same again, as long as nobody asks for what is newer."""
    for encoded in recorded["calls"].values():
        assert remote.encode(remote.decode_remote(bytes.fromhex(encoded)), FIRST_LEVEL).hex() == encoded
    for encoded in recorded["outcomes"].values():
        assert remote.encode(remote.decode_outcome(bytes.fromhex(encoded)), FIRST_LEVEL).hex() == encoded


def test_frames_between_nodes_are_read(recorded: dict[str, Any]) -> None:
    reader = framing.Unframer(1 << 20)
    reader.feed(bytes.fromhex(recorded["frames"]))
    assert [bytes(message) for message in iter(reader.next, None)] == [FRAMED, FRAMED * FRAMED_TIMES]


def test_the_file_of_a_node_that_has_rejoined_is_read(recorded: dict[str, Any]) -> None:
    again = msgspec.json.encode(msgspec.json.decode(recorded["rejoins"], type=RejoinRecord))
    found, told = msgspec.json.decode(again), msgspec.json.decode(recorded["rejoins"])
    assert {field: found[field] for field in told} == told


def test_each_record_of_the_journal_is_read(recorded: dict[str, Any]) -> None:
    data = bytes.fromhex(recorded["journal"])
    header = journal_format.read_header(data, 0)
    assert header is not None
    assert (header.journal_id, header.sequence, header.commit_index) == (JOURNAL_ID, 1, 2)
    records = journal_format.read_records(data, 0, header)
    assert records is not None
    assert [record.kind for record in records] == [getattr(journal_format, kind) for kind in KINDS]


def test_this_program_writes_what_was_recorded_last() -> None:
    """Until the release: record it again when this fails on purpose. Afterwards: a change belongs to a higher level."""
    newest = json.loads((FORMATS / f"{NEWEST}.json").read_text("utf-8"))
    assert frame().hex() == newest["journal"]
    assert b"".join(frames_of_messages()).hex() == newest["frames"]
    for part, now in (("calls", samples_of_calls()), ("outcomes", samples_of_outcomes())):
        assert {tag: encoded.hex() for tag, encoded in now.items() if tag in newest[part]} == newest[part]
    assert {tag: encoded.hex() for tag, encoded in samples().items() if tag in newest["messages"]} == newest["messages"]
