"""`pqctl user`: lists, sets and deletes users."""

from __future__ import annotations

import secrets

from sockpqd.pqctl.actions.existence import USER, existing
from sockpqd.pqctl.connect import cluster_of
from sockpqd.pqctl.invocation import Call
from sockpqd.pqctl.output.exit_codes import DONE
from sockpqd.pqctl.settings import read_secret

SECRET_BYTES = 32       # of randomness in a generated secret


def show_list(call: Call) -> int:
    """Print all users with their rights."""
    with cluster_of(call) as (client, _):
        users = client.users()
    if call.as_json:
        told = [{"name": user.name, "rights": list(user.rights), "in_file": user.in_file} for user in users]
        call.answer("", {"users": told})
        return DONE

    from sockpqd.pqctl.output.table import Column, print_rows

    if users:
        columns = (Column("user", folds=True), Column("rights", folds=True), Column("kept in"))
        print_rows(call, columns, [
            (user.name, ", ".join(user.rights) or "none", "users file" if user.in_file else "the cluster")
            for user in users
        ])
    else:
        call.print("there is no user")
    return DONE


def change(call: Call, name: str, rights: str, secret_file: str | None) -> int:
    """Create a user, or change their rights and secret; a generated secret is shown once."""
    secret = secrets.token_urlsafe(SECRET_BYTES) if secret_file is None else read_secret(secret_file)
    with cluster_of(call, serving=True) as (client, _):
        client.set_user(name, rights, secret)
    new = secret if secret_file is None else None
    sentence = f"{name} may: {'nothing' if rights == '-' else rights.replace(',', ', ')}"
    if new is not None:
        sentence += f"\nsecret, not shown again: {new}"
    call.answer(sentence, {"name": name, "rights": [] if rights == "-" else rights.split(","), "secret": new})
    return DONE


def delete(call: Call, name: str) -> int:
    """Delete a user (USER DELETE)."""
    with cluster_of(call, serving=True) as (client, _), existing(client, USER, name):
        client.delete_user(name)
    call.answer(f"user {name} deleted", {"name": name})
    return DONE
