"""Files that operators wrote for a release mean the same to every later one.

`data/settings/` has those of each release: NAME.toml, NAME.users.toml and NAME.pqctl.toml, and NAME.json with what they
mean (settings.py). A later release may have further keys.
"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from msgspec.inspect import ListType, StructType, UnionType, VarTupleType

from sockpqd.gateway.config import Config
from sockpqd.pqctl.settings import KINDS
from tests.upgrade.settings import SETTINGS, meaning

NAMES = sorted(path.stem for path in SETTINGS.glob("*.json"))
NEWEST = NAMES[-1]


def test_those_of_the_first_level_are_there() -> None:
    assert "level1" in NAMES


def known_to(recorded: object, found: object) -> object:
    """Return `found` without keys that are not in `recorded`."""
    if isinstance(recorded, dict) and isinstance(found, dict):
        return {key: known_to(value, found[key]) for key, value in recorded.items() if key in found}
    if isinstance(recorded, list) and isinstance(found, list) and len(recorded) == len(found):
        return [known_to(old, new) for old, new in zip(recorded, found, strict=True)]
    return found


@pytest.mark.parametrize("name", NAMES)
def test_they_mean_what_they_meant(name: str) -> None:
    recorded = json.loads((SETTINGS / f"{name}.json").read_text("utf-8"))
    assert known_to(recorded, json.loads(json.dumps(meaning(name)))) == recorded


def keys(kind: msgspec.inspect.Type, before: str = "") -> Iterator[str]:
    """Return all keys of a section, including the sections in it."""
    match kind:
        case StructType():
            for field in kind.fields:
                inner = list(keys(field.type, f"{before}{field.encode_name}."))
                yield from inner or [f"{before}{field.encode_name}"]
        case ListType() | VarTupleType():
            yield from keys(kind.item_type, before)
        case UnionType():
            for one in kind.types:
                yield from keys(one, before)


def written(value: Any, before: str = "") -> Iterator[str]:
    """Return all keys in a document."""
    if isinstance(value, dict):
        for key, inner in value.items():
            found = list(written(inner, f"{before}{key}."))
            yield from found or [f"{before}{key}"]
    elif isinstance(value, list):
        for one in value:
            yield from written(one, before)


def test_all_keys_of_this_program_are_in_the_newest_files() -> None:
    """Until the release: add the key to the file. Afterwards: to the next release's."""
    document = tomllib.loads((SETTINGS / f"{NEWEST}.toml").read_text("utf-8"))
    assert set(keys(msgspec.inspect.type_info(Config))) == set(written(document))
    assert set(tomllib.loads((SETTINGS / f"{NEWEST}.pqctl.toml").read_text("utf-8"))) == set(KINDS)
