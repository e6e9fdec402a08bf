"""`pqctl backup`, `verify` and `restore`: the state as a file (SNAPSHOT, CLONE), never as a whole in memory."""

from __future__ import annotations

import mmap
import re
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO

from sockpq import Client, Refused

from sockpqd.pqctl.connect import Servers, cluster_of, must_play_no_part
from sockpqd.pqctl.health import id_of
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.confirm import confirm
from sockpqd.pqctl.output.exit_codes import DONE, FILE_ERROR, REFUSED, UNREACHED, Failure
from sockpqd.pqctl.output.files import NewFile, opened
from sockpqd.pqctl.output.text import counted, sized
from sockpqd.pqctl.snapshot_file import Contents, Damaged, users_in
from sockpqd.pqctl.snapshot_file import verify as read

ID_DIGITS = 16              # of the cluster's identity in sentences, as in `cluster status`
CLUSTER_DIGITS = 8          # of the cluster's identity in names of files
NONE = "0" * CLUSTER_DIGITS
NAME = re.compile(r"sockpqd-([0-9a-f]{8})-[0-9]{8}T[0-9]{6}\.[0-9]{3}Z\.snapshot")


def backup(call: Call, directory: str, keep: int | None, node: str | None, *, with_users: bool) -> int:
    """Fetch the state of this node, or of a follower, into a new file, and remove the oldest ones of the cluster."""
    folder = Path(directory)
    new = NewFile(directory)
    contents: Contents | None = None
    with cluster_of(call) as (client, servers):
        if node is None and servers.leader is None:
            raise Failure(UNREACHED, f"no server leads: name the node whose state to save, by --node NAME; "
                                     f"those that answer: {', '.join(name for name, _ in servers.named())}")
        name, address = servers.find(node or _follower(servers))

        def fetch(file: BinaryIO) -> str:
            nonlocal contents
            client.snapshot_into(file, users=with_users, server=address)
            file.flush()
            contents = read(file)
            return _name(contents)

        try:
            path = new.fill(fetch)
        except Damaged as error:
            raise Failure(FILE_ERROR, f"what {name} has sent is damaged: {error}") from error
    assert contents is not None
    removed = [] if keep is None else _thin(folder, contents, keep)
    told = f"state of {name} saved in {path}: {_described(contents)}"
    call.answer(told + (f"; {counted(len(removed), 'older backup')} removed" if removed else ""),
                {"file": str(path), "name": name, "removed": removed, **_as_json(contents)})
    return DONE


def _follower(servers: Servers) -> str | None:
    """The node to ask: a follower that is not far behind, else None for the leader."""
    leader = servers.leader
    if leader is None:
        return None
    lines = {line.name: line for view in servers.views for line in view.nodes if view.server == servers.addresses[0]}
    up = [name for name, _ in servers.named() if name != leader.name]
    near = [(lines[name].lag, name) for name in up if name in lines and lines[name].role == "FOLLOWER"]
    return min(((lag, name) for lag, name in near if lag is not None), default=(0, None))[1]


def _name(contents: Contents) -> str:
    now = datetime.now(UTC)
    time = f"{now:%Y%m%dT%H%M%S}.{now.microsecond // 1000:03d}Z"
    return f"sockpqd-{(contents.cluster or NONE)[:CLUSTER_DIGITS]}-{time}.snapshot"


def _thin(folder: Path, contents: Contents, keep: int) -> list[str]:
    """Remove all but the newest backups of this cluster; their names show their order."""
    cluster = (contents.cluster or NONE)[:CLUSTER_DIGITS]
    ours = sorted(path.name for path in folder.iterdir()
                  if (match := NAME.fullmatch(path.name)) is not None and match[1] == cluster)
    removed = ours[:-keep]
    try:
        for name in removed:
            (folder / name).unlink()
    except OSError as error:
        raise Failure(FILE_ERROR, f"the backup is made, but an old one cannot be removed: {error}") from error
    return removed


def verify(call: Call, file: str) -> int:
    """Check every byte of a backup and describe it."""
    with opened(file) as stream:
        contents = _read(file, stream)
    call.answer(f"{file} is good: {_described(contents)}", {"file": file, **_as_json(contents)})
    return DONE


def restore(call: Call, file: str, *, dry_run: bool, with_users: bool, yes: bool) -> int:
    """Replace the state of the cluster with a backup, or describe what that would do."""
    with opened(file) as stream, cluster_of(call, serving=True) as (client, servers):
        must_play_no_part(call, servers)        # the client would try for minutes, as in an election
        contents = _read(file, stream)
        if with_users and not contents.users:
            raise Failure(FILE_ERROR, f"no users are in {file}: it was made without --with-users, or there were none: "
                                      "leave out --with-users")
        now = client.total()
        level = None if servers.leader is None else servers.leader.cluster_level
        if level is not None and contents.level > level:
            raise Failure(REFUSED, f"{file} needs a cluster of feature level {contents.level}, and this one has "
                                   f"{level}: upgrade its nodes first")
        there = (f"{counted(now.jobs, 'waiting job')} and {counted(now.running, 'running job')} "
                 f"in {counted(now.queues, 'queue')}")
        own = id_of(servers.views)
        other = f"; THE FILE IS OF ANOTHER CLUSTER than this one, {own}" if _is_foreign(contents, own) else ""
        told = {"file": file, **_as_json(contents)}
        replaced = {"waiting": now.jobs, "running": now.running, "queues": now.queues}
        if dry_run:
            holds = now.jobs or now.running or now.queues
            what = f"the cluster's {there}" if holds else "nothing, as there is no job"
            call.answer(f"{file} is good: {_described(contents)}{other}; it would replace {what}. "
                        "Nothing was done.", {**told, "replaced": replaced, "restored": False})
            return DONE
        if not yes:
            confirm(f"Replace the {there} of cluster {own or 'without identity'} by {file} "
                    f"({_described(contents)}{other})?", yes)
        # Not closed here: after an error its traceback still holds parts of it, and closing would hide the error.
        client.clone(memoryview(mmap.mmap(stream.fileno(), 0, prot=mmap.PROT_READ)))
        kept = _set_users(client, stream) if with_users else []
    done = f"the cluster has the state of {file}"
    if with_users:
        done += f" and its {counted(contents.users, 'user')}"
    if kept:
        done += f"; in the servers' own files, and left as they are: {' '.join(kept)}"
    call.answer(done, {**told, "replaced": replaced, "restored": True})
    return DONE


def _set_users(client: Client, stream: BinaryIO) -> list[str]:
    """Set all users of a backup; returns those that are in the servers' own files."""
    kept = []
    for name, rights, key in users_in(stream):
        try:
            client.set_user(name, rights, key)
        except Refused:
            kept.append(name)
    return kept


def _read(file: str, stream: BinaryIO) -> Contents:
    """Check every byte of a file; raises Failure."""
    try:
        return read(stream)
    except Damaged as error:
        raise Failure(FILE_ERROR, f"{file} is damaged or no backup: {error}") from error
    except OSError as error:
        raise Failure(FILE_ERROR, f"cannot read {file}: {error.strerror}") from error


def _described(contents: Contents) -> str:
    when = datetime.fromtimestamp(contents.clock_s, UTC)
    users = f"with {counted(contents.users, 'user')}, " if contents.users else ""
    return (f"{sized(contents.size)}, {users}cluster {contents.cluster[:ID_DIGITS] or 'without identity'}, "
            f"level {contents.level}, as of {when:%Y-%m-%d %H:%M:%S} UTC")


def _is_foreign(contents: Contents, own: str | None) -> bool:
    """Return whether a backup is from another cluster; `own`: the beginning of this one's id, as servers report it."""
    return bool(contents.cluster) and own is not None and not contents.cluster.startswith(own)


def _as_json(contents: Contents) -> dict[str, object]:
    return {"bytes": contents.size, "cluster": contents.cluster, "level": contents.level, "format": contents.format,
            "applied": contents.applied, "time": contents.clock_s, "checksum": contents.checksum,
            "users": contents.users}
