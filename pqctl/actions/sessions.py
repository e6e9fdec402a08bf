"""`pqctl session`: listing sessions and ending one."""

from __future__ import annotations

from pqctl.connect import cluster_of, reading
from pqctl.invocation import Call
from pqctl.output.exit_codes import DONE, REFUSED


def show_list(call: Call) -> int:
    """Print all sessions, by number."""
    with reading(call) as (client, server):
        found = client.sessions(server=server)
    if call.as_json:
        call.answer("", {"sessions": [session._asdict() for session in found]})
        return DONE

    from pqctl.output.table import Column, print_rows

    if found:
        columns = [Column("number", figures=True), Column("user", folds=True), Column("address", folds=True)]
        columns += [Column(title, figures=True) for title in ("ttl", "idle", "bound jobs")]
        print_rows(call, columns, [
            (str(session.number), session.user or "-", session.address or "-", f"{session.ttl:,g} s",
             f"{session.idle:,} s", f"{session.bound:,}") for session in found
        ])
    else:
        call.print("there is no session")
    return DONE


def close(call: Call, number: int) -> int:
    """End a session."""
    with cluster_of(call, serving=True) as (client, _):
        ended = client.end_session(number)
    if not ended:
        call.answer_nothing(f"there is no session {number}", {"number": number, "ended": False})
        return REFUSED
    call.answer(f"session {number} has ended", {"number": number, "ended": True})
    return DONE
