"""The page of the users, on which administrators create, change and delete the users kept by the cluster."""

from __future__ import annotations

from collections.abc import Iterator

from sockpqd.gateway.dashboard.markup import Child, Markup, table, tag
from sockpqd.gateway.dashboard.pages.parts.view import NotAllowed, View, counted, details, field, form, page, section

ROWS = 200
RIGHTS = "put, get, queue, item, group, admin, each for all names or with a prefix: put:mail* get:mail*"


async def show(view: View) -> str:
    """Return the page. Raises NotAllowed."""
    if not view.visitor.admin:
        raise NotAllowed
    listed = view.hub.access.listed(view.hub.access.names())
    about = None if view.hub.access.required else "No users are required here: every client may do everything."
    return page(
        view, "Users", tag("p", about) if about else None,
        await table(("user", "rights", "kept in", ""), _rows(view, listed), counted(len(listed), "user"),
                    empty="There is no user yet."),
        section("New user, or another secret", _form(view)),
    )


def _rows(view: View, listed: list[tuple[str, str, str]]) -> Iterator[list[Child]]:
    for name, rights, source in listed[:ROWS]:
        mine = source == "LOG"
        yield [
            name, rights, "the cluster" if mine else "the users file of this node",
            [details("Change", _form(view, name, rights)), form(view, "user.delete", "Delete", {"user": name},
                                                                back="/users")] if mine else "",
        ]


def _form(view: View, name: str | None = None, rights: str = "") -> Markup:
    """Return the form of a new user, or of this one. The secret is never sent back, and must be entered again."""
    if not view.visitor.secure:
        return tag("p", "Secrets can be set over TLS or on the node's own machine only, because this page was not "
                        "encrypted on its way.")
    known = None if name is None else {"user": name}
    return form(
        view, "user.set", "Set", known, field("user", "Name", required=True) if name is None else None,
        field("rights", "Rights", "" if rights == "-" else rights.replace(",", " "), placeholder=RIGHTS, size="60"),
        field("secret", "Secret, 16 to 64 characters", type="password", required=True, minlength="16", maxlength="64"),
        back="/users",
    )
