"""Kinds of damage to the files of a node that is down."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from pathlib import Path

Damage = Callable[[Path, Path, random.Random], str]     # (data directory, older copy of it, ..) -> what was done


def files(data_dir: Path) -> list[Path]:
    """Return the files of the journal and the snapshots that are not empty."""
    journal, snapshots = sorted(data_dir.glob("journal/journal-*")), sorted(data_dir.glob("snapshots/snapshot-*"))
    return [path for path in (*journal, *snapshots) if used_bytes(path)]


def used_bytes(path: Path) -> int:
    """Return the length without the zeros at the end."""
    return len(path.read_bytes().rstrip(b"\0"))


def flip_bit(path: Path, rng: random.Random) -> None:
    """Flip one bit of a file, not in the zeros at its end."""
    place = rng.randrange(used_bytes(path) or 1)
    with path.open("r+b") as file:
        file.seek(place)
        byte = file.read(1)[0]
        file.seek(place)
        file.write(bytes([byte ^ 1 << rng.randrange(8)]))


def flip_bits(data_dir: Path, copy: Path, rng: random.Random) -> str:
    """Flip one bit, or some bits, of one file."""
    path = rng.choice(files(data_dir))
    count = rng.choice((1, 1, 8))
    for _ in range(count):
        flip_bit(path, rng)
    return f"{count} bits of {path.name} flipped"


def overwrite(data_dir: Path, copy: Path, rng: random.Random) -> str:
    """Overwrite one to eight sectors of a random file; returns a description."""
    path = rng.choice(files(data_dir))
    place = rng.randrange(used_bytes(path)) // 512 * 512
    with path.open("r+b") as file:
        file.seek(place)
        file.write(rng.randbytes(512 * rng.randrange(1, 9)))
    return f"sectors of {path.name} overwritten at {place}"


def cut(data_dir: Path, copy: Path, rng: random.Random) -> str:
    """Cut off the end of a file."""
    path = rng.choice(files(data_dir))
    with path.open("r+b") as file:
        file.truncate(rng.randrange(used_bytes(path)))
    return f"{path.name} cut at {path.stat().st_size}"


def cut_between_frames(data_dir: Path, copy: Path, rng: random.Random) -> str:
    """Replace the end of the journal by zeros, as if the last writes had never been made."""
    path = [path for path in files(data_dir) if path.parent.name == "journal"][-1]
    data = path.read_bytes()
    starts = [place for place in range(512, len(data), 512) if data.startswith(b"SPQJ", place)]
    if not starts:
        return flip_bits(data_dir, copy, rng)
    place = rng.choice(starts)
    with path.open("r+b") as file:
        file.truncate(place)
        file.truncate(len(data))
    return f"{path.name} without what is behind {place}"


def swap(data_dir: Path, copy: Path, rng: random.Random) -> str:
    """Swap the contents of two files."""
    found = files(data_dir)
    if len(found) < 2:
        return remove(data_dir, copy, rng)
    one, other = rng.sample(found, 2)
    between = data_dir / "between"
    one.rename(between)
    other.rename(one)
    between.rename(other)
    return f"{one.name} and {other.name} swapped"


def remove(data_dir: Path, copy: Path, rng: random.Random) -> str:
    """Remove a file, a whole folder, or everything."""
    what = rng.choice((*files(data_dir), data_dir / "journal", data_dir / "snapshots", data_dir))
    if what.is_dir():
        shutil.rmtree(what)
    else:
        what.unlink()
    return f"{what.name} removed"


def put_back(data_dir: Path, copy: Path, rng: random.Random) -> str:
    """Put back an older copy of everything, of the journal, of the snapshots, or of one file."""
    if not copy.exists():
        return remove(data_dir, copy, rng)
    whole = [copy, copy / "journal", copy / "snapshots"]
    what = rng.choice((*whole, rng.choice(files(copy))))
    target = data_dir / what.relative_to(copy)
    if what.is_dir():
        shutil.rmtree(target, ignore_errors=True)
        shutil.copytree(what, target)
    else:
        target.parent.mkdir(exist_ok=True)
        shutil.copy(what, target)
    return f"an older copy of {what.relative_to(copy.parent)} put back"


DAMAGES: tuple[Damage, ...] = (flip_bits, overwrite, cut, cut_between_frames, swap, remove, put_back)
