"""`pqctl verify` of whatever file ends in one line."""

from __future__ import annotations

import io
import json
import math
import re
from contextlib import redirect_stderr, redirect_stdout
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sockpqd.pqctl.main import main
from sockpqd.pqctl.output.exit_codes import DONE, FILE_ERROR
from tests.pqctl.backup_file import CLUSTER, snapshot

ODD = st.one_of(
    st.none(), st.booleans(), st.integers(-(2**63), 2**64 - 1), st.floats(), st.text(max_size=5),
    st.binary(max_size=20), st.lists(st.integers(0, 9), max_size=3),
    st.sampled_from([2**63, 253_402_300_800_000, 10**18, math.nan, math.inf]),
)
HEADS = st.lists(ODD, min_size=0, max_size=20)


def encoded(value: Any) -> bytes:
    return msgspec.msgpack.encode(value)


def file_of(head: bytes, rest: bytes = b"") -> bytes:
    """Return a file with a good checksum."""
    body = b"PQRAFT1\n" + (6).to_bytes(4, "big") + len(head).to_bytes(4, "big") + head + rest
    return body + blake2b(body, digest_size=32).digest()


def verified(folder: Path, content: bytes, *options: str) -> tuple[int, str, str]:
    """Return exit code, output, errors."""
    file = folder / "file"
    file.write_bytes(content)
    out, errors = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(errors), pytest.raises(SystemExit) as end:
        main(["verify", str(file), *options])
    assert isinstance(end.value.code, int)
    return end.value.code, out.getvalue(), errors.getvalue()


def check(folder: Path, content: bytes) -> int:
    """Check that it ends in one line, and with --json in one object that any program can read."""
    code, out, errors = verified(folder, content)
    assert code in (DONE, FILE_ERROR), (out, errors)
    assert len((out + errors).splitlines()) == 1, (out, errors)
    code, out, _ = verified(folder, content, "--json")
    json.loads(out, parse_constant=lambda word: pytest.fail(f"{word} is no JSON"))
    return code


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files")


def test_a_backup_is_good(folder: Path) -> None:
    assert check(folder, snapshot()) == DONE


@given(st.binary(max_size=200))
def test_garbage(folder: Path, content: bytes) -> None:
    assert check(folder, content) == FILE_ERROR


@given(st.integers(0, len(snapshot()) - 1))
def test_a_file_that_was_cut(folder: Path, size: int) -> None:
    assert check(folder, snapshot()[:size]) == FILE_ERROR


@given(HEADS, st.binary(max_size=30))
def test_a_head_of_anything(folder: Path, head: list[Any], rest: bytes) -> None:
    check(folder, file_of(encoded(head), rest))


@given(st.fixed_dictionaries({}, optional=dict.fromkeys((1, 4, 5, 18), ODD)), st.binary(max_size=30))
def test_a_head_with_odd_fields(folder: Path, odd: dict[int, Any], rest: bytes) -> None:
    head = ["head", 815, 3, None, 1_700_000_000_000, CLUSTER, *[0] * 12, 1]
    for place, value in odd.items():
        head[place] = value
    check(folder, file_of(encoded(head), rest))


@given(st.binary(max_size=60))
def test_a_head_that_is_no_message(folder: Path, head: bytes) -> None:
    check(folder, file_of(head))


@given(ODD, st.integers(0, 2**32 - 1))
def test_users_of_anything(folder: Path, users: Any, length: int) -> None:
    body = b"\x92\xa5users" + encoded([users])
    head = encoded(["head", 815, 3, None, 1_700_000_000_000, CLUSTER])
    check(folder, file_of(head, len(body).to_bytes(4, "big") + body))
    check(folder, file_of(head, length.to_bytes(4, "big") + body))


@pytest.mark.parametrize("depth", [10, 500, 5_000, 100_000])
def test_lists_in_lists(folder: Path, depth: int) -> None:
    deep = b"\x91" * depth + b"\xc0"
    check(folder, file_of(deep))
    body = b"\x92\xa5users" + deep
    check(folder, file_of(encoded(["head", 815, 3, None, 1, CLUSTER]), len(body).to_bytes(4, "big") + body))


def test_the_help_names_no_server() -> None:
    told = io.StringIO()
    with redirect_stdout(told), pytest.raises(SystemExit):
        main(["verify", "--help"])
    assert "the file is whole" in told.getvalue()
    assert not re.search("^ +[123] ", told.getvalue(), re.MULTILINE)      # no exit code of an answer
