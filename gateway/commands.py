"""What each request does, as two tables: those that may run while earlier ones await their answers, and the others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from core import Done, Get, Later, Put
from gateway import administration, answers, requests
from gateway.clone import Clone
from gateway.pending import PutOfWait
from gateway.streams import run_list, snapshot
from gateway.waiters import Waiter

if TYPE_CHECKING:
    from gateway.session import Session


# ---- operations

def _put(session: Session, put: Put) -> None:
    if _no_room(session):
        return
    session.propose(put)
    waiters = session.hub.waiters
    if len(waiters):
        waiters.follow(put)


def _no_room(session: Session) -> bool:
    """Refuse to take a job that the disks have no room for (A62); 500 comes before 503."""
    cluster = session.hub.cluster
    if cluster.full and cluster.serving:
        session.say(answers.BUSY)
        return True
    return False


def _operation(session: Session, operation: Get | Done | Later) -> None:
    session.propose(operation)


def _blocking_get(session: Session, request: requests.BlockingGet) -> None:
    waiter = Waiter(session, request.get, request.until_finished)
    session.block(waiter)
    session.hub.cluster.propose(request.get, waiter)


def _put_wait(session: Session, request: requests.PutWait) -> None:
    """Two operations, back to back: the hand-out always stands directly behind its PUT (DECISIONS 3)."""
    if _no_room(session):
        return
    waiter = Waiter(session, request.get)
    slot = PutOfWait(session, waiter=waiter)
    session.await_slot(slot)
    session.block(waiter)
    hub = session.hub
    hub.cluster.propose(request.put, slot)
    hub.cluster.propose(request.get, waiter)
    if len(hub.waiters):
        hub.waiters.follow(request.put)


# ---- answers known at once

def _refused(session: Session, request: requests.Refused) -> None:
    session.say(request.answer)


def _caps(session: Session, request: requests.Caps) -> None:
    session.say(answers.CAPS)


def _ping(session: Session, request: requests.Ping) -> None:
    session.say(answers.OK)


# ---- this node and its applied state

def _broken(session: Session, request: requests.Broken) -> None:
    session.say_last(request.answer)


def _quit(session: Session, request: requests.Quit) -> None:
    session.say_last(answers.GOODBYE)


def _shutdown(session: Session, request: requests.Shutdown) -> None:
    session.say_last(answers.SHUTTING_DOWN)
    session.hub.shut_down(f"SHUTDOWN from {session.link.peer}")


def _total(session: Session, request: requests.Total) -> None:
    session.say(answers.total(session.hub.cluster.machine.total(request.queue)))


def _interconnect(session: Session, request: requests.Interconnect) -> None:
    session.say(answers.number(session.hub.cluster.interconnect_id()))


def _run_list(session: Session, request: requests.RunList) -> None:
    session.run(run_list(session, request.with_data))


def _snapshot(session: Session, request: requests.Snapshot) -> None:
    session.run(snapshot(session))


def _online(session: Session, request: requests.Online) -> None:
    session.hub.cluster.go_online()
    session.say(answers.SWITCHED_ONLINE)


def _cluster_status(session: Session, request: requests.ClusterStatus) -> None:
    cluster = session.hub.cluster
    session.say(answers.cluster_status(cluster.status(), cluster.machine))


def _cluster_leader(session: Session, request: requests.ClusterLeader) -> None:
    cluster = session.hub.cluster
    name = cluster.leader()
    session.say(answers.cluster_leader(next((node for node in cluster.status() if node.name == name), None)))


def _cluster_hash(session: Session, request: requests.ClusterHash) -> None:
    session.say(answers.cluster_hash(*session.hub.cluster.state_hash()))


# ---- CLONE

def _clone_start(session: Session, request: requests.CloneStart) -> None:
    session.clone = Clone(session, request.total_bytes)
    session.await_slot(session.clone)


def _clone_data(session: Session, request: requests.CloneData) -> None:
    assert session.clone is not None
    session.clone.add(request.data, request.last)
    if request.last:
        session.clone = None


AT_ONCE: dict[type, Callable[[Session, Any], None]] = {
    Put: _put,
    Get: _operation,
    Done: _operation,
    Later: _operation,
    requests.BlockingGet: _blocking_get,
    requests.PutWait: _put_wait,
    requests.Refused: _refused,
    requests.Caps: _caps,
    requests.Ping: _ping,
    requests.CloneData: _clone_data,
}

ALONE: dict[type, Callable[[Session, Any], None]] = {
    requests.Broken: _broken,
    requests.Quit: _quit,
    requests.Shutdown: _shutdown,
    requests.Total: _total,
    requests.RunList: _run_list,
    requests.Snapshot: _snapshot,
    requests.CloneStart: _clone_start,
    requests.Interconnect: _interconnect,
    requests.Online: _online,
    requests.ClusterStatus: _cluster_status,
    requests.ClusterLeader: _cluster_leader,
    requests.ClusterHash: _cluster_hash,
    **dict.fromkeys(administration.WORK, administration.begin),
}
