"""The page of the topics: the queues bound to each, and forms to bind and unbind queues."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import islice
from urllib.parse import urlencode

from sockpqd.gateway.dashboard.markup import Child, Markup, link, table, tag
from sockpqd.gateway.dashboard.pages.parts.listing import listed, more
from sockpqd.gateway.dashboard.pages.parts.view import NotAllowed, View, counted, field, form, page, search, section

BINDINGS = 200              # of one topic
FEW = 3                     # of each topic in the list


async def show(view: View) -> str:
    """Return the list of topics, or one topic if the address names it. Raises NotAllowed."""
    if view.word("name"):
        return await _one(view, view.word("name"))
    word = view.word("search")
    listing = await listed(
        view, list(view.cluster.machine.topics),
        lambda name: 0 if word in name and view.visitor.sees(f"@{name}") else None,
    )
    return page(
        view, "Topics", search("/topics", word),
        await table(("topic", "bindings", "queues"), _topics(view, listing.names), counted(listing.count, "topic"),
                    empty="No queue is bound to such a topic."),
        more("/topics", {"search": word}, listing),
        section("Bind a queue", _bind(view, field("topic", "Topic", required=True))),
    )


def _topics(view: View, names: Sequence[str]) -> Iterator[list[Child]]:
    for name in names:
        bindings = _visible(view, name)
        if bindings:
            queues = ", ".join(queue for queue, _ in islice(bindings, FEW))
            yield [link(f"/topics?{urlencode({'name': name})}", name), len(bindings),
                   queues + (", …" if len(bindings) > FEW else "")]


def _visible(view: View, topic: str) -> Collection[tuple[str, str | None]]:
    """Return the bindings of the queues on which the visitor has any right."""
    bindings = view.cluster.machine.topics.get(topic, ())
    return bindings if view.visitor.sees("") else [one for one in bindings if view.visitor.sees(one[0])]


async def _one(view: View, name: str) -> str:
    if not view.visitor.sees(f"@{name}"):
        raise NotAllowed
    bindings = _visible(view, name)
    count = len(bindings)
    back = f"/topics?{urlencode({'name': name})}"
    return page(
        view, f"Topic {name}",
        await table(("queue", "pattern", ""), _bindings(view, name, list(islice(bindings, BINDINGS)), back),
                    counted(count, "binding") + (f", the first {BINDINGS}" if count > BINDINGS else ""),
                    empty="No queue is bound to it. A topic exists while it has a binding."),
        section("Bind a queue", _bind(view, None, name, back)),
        section("Actions", form(view, "topic.delete", "Delete the topic", {"topic": name}, back="/topics"))
        if bindings else None, above=("/topics", "Topics"),
    )


def _bindings(
    view: View, topic: str, bindings: Sequence[tuple[str, str | None]], back: str,
) -> Iterator[list[Child]]:
    for queue, pattern in bindings:
        its = {"topic": topic, "queue": queue, **({} if pattern is None else {"pattern": pattern})}
        yield [
            link(f"/queue?{urlencode({'name': queue})}", queue),
            "all messages" if pattern is None else tag("code", pattern),
            form(view, "topic.unbind", "Unbind", its, back=back),
        ]


def _bind(view: View, topic: Child, name: str | None = None, back: str = "/topics") -> Markup:
    return form(
        view, "topic.bind", "Bind", None if name is None else {"topic": name}, topic,
        field("queue", "Queue", required=True), field("pattern", "Pattern, empty: all messages", placeholder="eu.*.#"),
        back=back,
    )
