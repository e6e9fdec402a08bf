"""The input of a page, and the parts that all pages share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from math import isinf

from msgspec import Struct

from sockpqd.cluster import Cluster
from sockpqd.gateway.dashboard.actions import ACTIONS
from sockpqd.gateway.dashboard.asset_files import asset
from sockpqd.gateway.dashboard.background import HARM, BackgroundAction
from sockpqd.gateway.dashboard.markup import Child, Markup, tag, text
from sockpqd.gateway.dashboard.visitor import Visitor
from sockpqd.gateway.samples import FigureSampler
from sockpqd.gateway.server.hub import Hub

PAGES = (
    ("Work", (("/", "Overview"), ("/queues", "Queues"), ("/jobs", "Jobs"), ("/dead", "Dead jobs"), ("/items", "Items"),
              ("/background", "Background"))),
    ("Flow", (("/groups", "Groups"), ("/pulses", "Pulses"), ("/workers", "Workers"), ("/topics", "Topics"))),
    ("System", (("/cluster", "Cluster"), ("/clusters", "Clusters"), ("/events-live", "Events"),
                ("/slow", "Slow commands"), ("/sessions", "Sessions"), ("/users", "Users"))),
)
HARMFUL = frozenset((*HARM, *(name for name, action in ACTIONS.items() if action.harm)))    # their buttons are red
NUMBER_DIGITS_MAX = 9


class View(Struct, frozen=True):
    """A request for a page. `words`: the query of its address; `token`: for forms; `note`: about the last action.

    `certificates()` returns the certificates of this node: their keys in the configuration, and when they expire (Unix
    time). `background`: actions on many jobs that the visitor may see. `read_only`: no page has actions.
    """

    hub: Hub
    visitor: Visitor
    words: Mapping[str, str]
    token: str
    version: str
    samples: FigureSampler
    note: str = ""
    certificates: Callable[[], Iterable[tuple[str, float]]] = tuple
    background: Sequence[BackgroundAction] = ()
    read_only: bool = False

    @property
    def cluster(self) -> Cluster:
        """The cluster as this node knows it."""
        return self.hub.cluster

    def word(self, name: str, default: str = "") -> str:
        """Return a value of the query."""
        return self.words.get(name, default)


    def number(self, name: str) -> int:
        """Return a value of the query as a number; 0 if it is not a number."""
        word = self.word(name)
        return int(word) if word.isascii() and word.isdigit() and len(word) <= NUMBER_DIGITS_MAX else 0


class NotAllowed(Exception):
    """The visitor has no right to see this."""


class NotThere(Exception):
    """The subject of the page does not exist. `sentence` says so; `above`: address and name of the list of its kind."""

    def __init__(self, sentence: str, above: tuple[str, str]) -> None:
        super().__init__(sentence)
        self.above = above


class Redirect(Exception):
    """The answer is another page; the message is its address."""


def whom(name: str, leader: str | None) -> str:
    """Return a sentence with the node that `name`, which does not serve, takes for the leader."""
    if leader is None:
        return "knows no leader"
    return f"follows {leader}" if leader != name else "leads, but does not serve at the moment"


def page(view: View, title: str, *content: Child, above: tuple[str, str] | None = None, live: bool = True) -> str:
    """Return a whole document.

    `above`: address and name of the list to which the subject of this page belongs; `live`: the script keeps it fresh.
    """
    cluster = view.cluster
    head = tag(
        "head", tag("meta", charset="utf-8"), tag("title", f"{title} · sockpqd {cluster.name}"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("link", rel="stylesheet", href=asset("style.css")),
        tag("link", rel="stylesheet", href=asset("uplot.css")), tag("link", rel="icon", href=asset("icon.svg")),
        tag("script", src=asset("uplot.js"), defer=True), tag("script", src=asset("charts.js"), defer=True),
        tag("script", src=asset("script.js"), defer=True),
    )
    body = tag(
        "body", tag("a", "Skip to the content", href="#content", class_="skip"), _header(view, title, above),
        tag("div", _stale(view), tag(
            "main", tag("p", tag("a", above[1], href=above[0]), class_="above") if above else None,
            tag("h1", title), tag("p", view.note, class_="note", role="status") if view.note else None,
            content, id="content", data_live="/live" if live else None, data_state=state(cluster),
        ), tag("footer", tag("p", f"As of entry {cluster.machine.index}: ", tag("span", age(cluster), id="age"),
                             f" · {view.visitor.user or 'no users required'}")), class_="right"),
    )
    return "<!doctype html>\n" + tag("html", head, body, lang="en")


def _header(view: View, title: str, above: tuple[str, str] | None) -> Markup:
    """Return the head of each page: this node and its role, the search, and the pages, a menu on narrow screens."""
    cluster = view.cluster
    role = "leads" if cluster.serving else whom(cluster.name, cluster.leader())
    groups = [tag("div", tag("h2", name), [_entry(view, path, label, title, above) for path, label in pages])
              for name, pages in PAGES]
    return tag(
        "header", tag("p", tag("a", "sockpqd", href="/", class_="brand"), tag("small", view.version)),
        tag("p", tag("strong", cluster.name), f" {role}", class_="where"), _find(view),
        tag("button", "Menu", type="button", popovertarget="pages", class_="menu"),
        tag("nav", groups, aria_label="Pages", id="pages", popover="auto"),
    )


def _entry(view: View, path: str, label: str, title: str, above: tuple[str, str] | None) -> Markup:
    """Return the link to a page; the one to dead jobs has their number, for visitors who see all queues."""
    current = "page" if label == title else "true" if above is not None and path == above[0] else None
    dead = view.samples.cluster.now()["dead"] if path == "/dead" and view.visitor.sees("") else None
    return tag("a", label, [" ", tag("b", f"{dead:,.0f}")] if dead else None, href=path, aria_current=current)


def _find(view: View) -> Markup:
    """Return the field by which jobs and queues are found from any page."""
    return tag(
        "form", tag("input", name="search", type="search", placeholder="Job or queue",
                    aria_label="Number, id or key of a job, or a queue", autocomplete="off"),
        tag("button", "Find"), method="get", action="/find", role="search",
    )


def _stale(view: View) -> Markup:
    """Return the banner that the script shows when the page is older than it looks, with links to the other nodes."""
    elsewhere = [
        [tag("a", node.name, href=f"//{host}/", data_node=host), " "]
        for node in view.cluster.status() if node.name != view.cluster.name
        if (host := http_address(node.client, None if node.host is None else node.host.http_port)) is not None
    ]
    return tag(
        "div", tag("strong", "Stale"), " ", tag("span", f"{view.cluster.name} does not answer", id="stale-why"),
        [". Go on at ", elsewhere] if elsewhere else None,
        id="stale", role="alert", hidden=True,
    )


def http_address(client: str, port: int | None) -> str | None:
    """Return where a node shows its pages, from the address that its clients dial; None if it has none."""
    return f"{client.rpartition(':')[0]}:{port}" if port and client else None


def state(cluster: Cluster) -> str:
    """Return a value that changes when there may be something new to see."""
    roles = "".join(node.role[0] for node in cluster.status())
    return f"{cluster.machine.index} {cluster.leader()} {cluster.serving} {cluster.online} {roles}"


def age(cluster: Cluster) -> str:
    """Return a sentence about the age of the page's data, the state of this node."""
    if cluster.serving:
        return "the newest"
    age_s = cluster.age_s()
    if isinf(age_s):
        return "this node has heard no leader yet"
    return f"{age_s:.0f} s old" if age_s >= 1 else "less than 1 s old"


def form(
    view: View, action: str, label: str, fields: Mapping[str, str] | None = None, *inputs: Child, back: str = "/",
) -> Markup:
    """Return a form of one action: hidden `fields`, visible `inputs`, and a button; nothing on read-only pages."""
    if view.read_only:
        return Markup()
    hidden = {"action": action, "token": view.token, "back": back, **(fields or {})}
    return tag(
        "form", [tag("input", type="hidden", name=name, value=value) for name, value in hidden.items()], inputs,
        tag("button", label, class_="harm" if action in HARMFUL else None), method="post", action="/act",
    )


def search(path: str, value: str, label: str = "Search", **more: str) -> Markup:
    """Return the form by which a list is searched; `more`: further words of the address."""
    hidden = [tag("input", type="hidden", name=name, value=word) for name, word in more.items()]
    return tag("form", hidden, field("search", label, value, type="search"), tag("button", "Search"), method="get",
               action=path, role="search")


def field(name: str, label: str, value: str = "", **more: str | bool) -> Markup:
    """Return a labelled text field."""
    return tag("label", label, " ", tag("input", name=name, value=value, autocomplete="off", **more))


def choice(name: str, label: str, options: tuple[str, ...]) -> Markup:
    """Return a labelled list of choices."""
    return tag("label", label, " ", tag("select", [tag("option", option) for option in options], name=name))


def section(title: str, *content: Child) -> Markup:
    """Return a part of a page with its heading, nothing if it is empty."""
    inner = text(content)
    return tag("section", tag("h2", title), inner) if inner else inner


def details(summary: str, *content: Child) -> Markup:
    """Return a part that shows its contents when it is opened, nothing if it is empty."""
    inner = text(content)
    return tag("details", tag("summary", summary), inner) if inner else inner


def duration(ms: int) -> str:
    """Return a duration of `ms` milliseconds with a unit."""
    seconds = ms / 1000
    if seconds < 120:
        return f"{seconds:.1f} s" if seconds < 10 else f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def counted(count: int, one: str, many: str | None = None) -> str:
    """Return a count with its noun: "1 job", "2 jobs"."""
    return f"{count:,} {one}" if count == 1 else f"{count:,} {many or one + 's'}"


def size(count: int) -> str:
    """Return a number of bytes with a unit, as pqctl formats it, which shares no code with the server."""
    number, unit = float(count), "B"
    for unit in ("B", "KiB", "MiB", "GiB", "TiB"):
        if number < 1000 or unit == "TiB":
            break
        number /= 1024
    return f"{number:.0f} {unit}" if unit == "B" else f"{number:.1f} {unit}"
