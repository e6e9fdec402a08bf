"""`pqctl session` and `pqctl worker`: sessions, and the pools of workers that belong to them."""

from __future__ import annotations

from typing import Literal

from sockpq import BadArguments

from sockpqd.pqctl.actions.existence import WORKERS, existing
from sockpqd.pqctl.connect import cluster_of, reading
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE, REFUSED
from sockpqd.pqctl.output.text import lasting

WORKER_SHALL = {"run": "go on", "pause": "pause", "stop": "stop"}
WORKER_STATES = {"run": "runs", "pause": "paused", "stop": "is to stop"}


def show_list(call: Call) -> int:
    """Print all sessions, ordered by number."""
    with reading(call) as (client, server):
        found = client.sessions(server=server)
    if call.as_json:
        call.answer("", {"sessions": [session._asdict() for session in found]})
        return DONE

    from sockpqd.pqctl.output.table import Column, print_rows

    if found:
        columns = [Column("number", figures=True), Column("user", folds=True), Column("address", folds=True)]
        columns += [Column(title, figures=True) for title in ("ttl", "idle", "bound jobs")]
        print_rows(call, columns, [
            (str(session.number), session.user or "-", session.address or "-", lasting(session.ttl),
             lasting(session.idle), f"{session.bound:,}") for session in found
        ])
    else:
        call.print("there is no session")
    return DONE


def close(call: Call, number: int) -> int:
    """End a session, whose bound jobs go back."""
    with cluster_of(call, serving=True) as (client, _):
        ended = client.end_session(number)
    if not ended:
        call.answer_nothing(
            f"there is no session {number} (`pqctl session list` shows all)", {"number": number, "ended": False}
        )
        return REFUSED
    call.answer(f"session {number} has ended", {"number": number, "ended": True})
    return DONE


def show_workers(call: Call) -> int:
    """Print all pools of workers by name (WORKER LIST)."""
    with reading(call) as (client, server):
        found = client.workers(server=server)
    if call.as_json:
        call.answer("", {"workers": [one._asdict() for one in found]})
        return DONE

    from sockpqd.pqctl.output.table import Column, print_rows

    if found:
        columns = [Column("name", folds=True), Column("address", folds=True)]
        columns += [Column(title, figures=True) for title in ("slots", "busy", "last heartbeat")]
        columns.append(Column("state"))
        print_rows(call, columns, [
            (one.name, one.address or "-", f"{one.slots:,}", f"{one.busy:,}", f"{lasting(one.age)} ago",
             WORKER_STATES.get(one.state, one.state))
            for one in found
        ])
    else:
        call.print("there is no pool of workers")
    return DONE


def set_worker(call: Call, name: str, most: int | None, least: int | None) -> int:
    """Set how many jobs a pool may run at a time (WORKER SET)."""
    with cluster_of(call, serving=True) as (client, _), existing(client, WORKERS, name):
        try:
            client.worker_set(name, most=most, least=least)
        except BadArguments as error:
            if most is not None and least is not None and least > most:
                raise
            raise BadArguments("its minimum would be above its maximum: give both --min and --max") from error
    call.answer(f"{name} gets its new bounds", {"worker": name, "max": most, "min": least})
    return DONE


def steer_worker(call: Call, name: str, state: Literal["run", "pause", "stop"]) -> int:
    """Let a pool run, pause or stop (WORKER SET .. STATE)."""
    with cluster_of(call, serving=True) as (client, _), existing(client, WORKERS, name):
        client.worker_set(name, state=state)
    call.answer(f"{name} will {WORKER_SHALL[state]}", {"worker": name, "state": state})
    return DONE
