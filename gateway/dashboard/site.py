"""The entry point: the page or action of a request, the right it needs, and the headers that keep browsers safe."""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping
from urllib.parse import urlencode, urlsplit

from aiohttp import web

from sockpqd.cluster.api import NotLeader
from sockpqd.gateway import audit
from sockpqd.gateway.auth.authorizer import Guard, Someone
from sockpqd.gateway.dashboard import actions, live
from sockpqd.gateway.dashboard.asset_files import ASSETS
from sockpqd.gateway.dashboard.background import HARM, LINES, MOVE, STOP, BackgroundActions
from sockpqd.gateway.dashboard.commands import execute, execute_at_leader
from sockpqd.gateway.dashboard.figures import NoFigures, figures
from sockpqd.gateway.dashboard.forms import TooLarge, fields_of
from sockpqd.gateway.dashboard.job_filter import filter_of
from sockpqd.gateway.dashboard.markup import link, tag
from sockpqd.gateway.dashboard.pages import (
    cluster,
    events,
    groups,
    items,
    job,
    pulses,
    queue,
    queues,
    sessions,
    slow,
    topics,
    users,
)
from sockpqd.gateway.dashboard.pages.finding import background, dead, find, jobs
from sockpqd.gateway.dashboard.pages.overview import page as overview
from sockpqd.gateway.dashboard.pages.parts.view import NotAllowed, NotThere, Redirect, View, form, page, section
from sockpqd.gateway.dashboard.pages.several import clusters
from sockpqd.gateway.dashboard.pages.workers import page as workers
from sockpqd.gateway.dashboard.visitor import Tokens, Visitor, same_origin, visitor_of
from sockpqd.gateway.monitoring.basic_auth import HttpAccess
from sockpqd.gateway.samples import FigureSampler
from sockpqd.gateway.server.hub import Hub

log = logging.getLogger("sockpqd.http")

NOTES_MAX = 100
PAGES_AT_ONCE = 2       # being made; each of them has a portion between any two turns of clients
SEARCHES_AT_ONCE = 2    # pages that search for seconds; they do not keep the others waiting
UNKNOWN = "nobody knows whether it was done: look"

CHALLENGE = {"WWW-Authenticate": 'Basic realm="sockpqd", charset="UTF-8"'}
HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",        # with no-referrer browsers send "Origin: null" with our own forms
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
KEPT = {"Cache-Control": "private, max-age=31536000, immutable"}       # of assets: their addresses change with them
PAGES: dict[str, Callable[[View], Awaitable[str]]] = {
    "/": overview.show, "/jobs": jobs.show, "/background": background.show,
    "/cluster": cluster.show, "/queues": queues.show, "/queue": queue.show, "/dead": dead.show,
    "/find": find.show, "/job": job.show, "/groups": groups.show, "/items": items.show, "/pulses": pulses.show,
    "/workers": workers.show, "/topics": topics.show, "/events-live": events.show, "/slow": slow.show,
    "/sessions": sessions.show, "/users": users.show, "/clusters": clusters.show,
}
SEARCHING = frozenset(("/jobs", "/find", "/dead"))
PATHS = frozenset((*PAGES, *ASSETS, "/live", "/figures", "/act"))


class Dashboard:
    """The pages and actions of one node. `access`: None if no users are required; `read_only`: there are no actions."""

    def __init__(
        self, hub: Hub, access: HttpAccess | None, version: str, samples: FigureSampler,
        certificates: Callable[[], Iterable[tuple[str, float]]] = tuple, *, read_only: bool = False,
    ) -> None:
        self._hub = hub
        self._access = access
        self._version = version
        self._tokens = Tokens()
        self._making = asyncio.Semaphore(PAGES_AT_ONCE)
        self._searching = asyncio.Semaphore(SEARCHES_AT_ONCE)
        self._notes: dict[str, str] = {}        # what was done, for the page that is shown next
        self._samples = samples
        self._certificates = certificates
        self._read_only = read_only
        self._background = BackgroundActions(hub)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse | None:
        """Answer a request; None if it is not for the dashboard.

        To an address that does not exist a browser gets a page that says so, other programs None.
        """
        if request.path not in PATHS:
            return await self._unknown(request)
        posted = request.path == "/act"
        if request.method not in (("POST",) if posted else ("GET", "HEAD")):
            return _text(405, "only POST" if posted else "only GET")
        visitor = await visitor_of(self._access, request)
        if visitor is None:
            return _text(401, "user and secret required", CHALLENGE)
        if posted and self._read_only:
            return _text(403, "this dashboard only shows: use pqctl, or the dashboard of another node")
        if posted:
            return await self._act(request, visitor)
        if request.path in ASSETS:
            asset = ASSETS[request.path]
            kept = KEPT if request.rel_url.query.get("v") == asset.version else {}
            return web.Response(
                body=asset.content, headers={**HEADERS, **kept, "Content-Type": f"{asset.kind}; charset=utf-8"})
        if request.path == "/live":
            return await live.stream(self._hub.cluster, request, HEADERS, self._guard(visitor))
        if request.path == "/figures":
            return await self._figures(request, visitor)
        return await self._page(request, visitor)

    async def _unknown(self, request: web.BaseRequest) -> web.Response | None:
        if request.method not in ("GET", "HEAD") or "text/html" not in request.headers.get("Accept", ""):
            return None
        visitor = await visitor_of(self._access, request)
        return None if visitor is None else _not_found(self._view(visitor, {}), "There is no page at this address.")

    async def _figures(self, request: web.BaseRequest, visitor: Visitor) -> web.Response:
        try:
            async with self._making:
                rows = await figures(self._samples, visitor, request.rel_url.query)
        except NoFigures as error:
            return _text(404, f"{error}")
        return web.Response(body=rows, headers={**HEADERS, "Content-Type": "application/json"})

    async def _page(self, request: web.BaseRequest, visitor: Visitor) -> web.Response:
        view = self._view(visitor, dict(request.rel_url.query))
        try:
            async with self._searching if request.path in SEARCHING else self._making:
                content = await PAGES[request.path](view)
            # Long pages are generated in portions, with turns of other tasks in between.
            if visitor.user is not None and self._guard(visitor).rights != visitor.rights:
                return _text(401, "the rights of the user have changed meanwhile", CHALLENGE)
            return _html(200, content)
        except Redirect as found:
            return web.Response(status=303, headers={**HEADERS, "Location": f"{found}"})
        except NotAllowed:
            return _html(403, page(view, "Not allowed", tag("p", "You have no right to see this.")))
        except NotThere as error:
            return _not_found(view, f"{error}", error.above)

    def _guard(self, visitor: Visitor) -> Guard:
        """Return a guard that always has the visitor's current rights."""
        return Guard(self._hub.access, self._hub.cluster, Someone(visitor.address, visitor.user))

    def _view(self, visitor: Visitor, words: dict[str, str]) -> View:
        note = self._notes.pop(words.get("note", ""), "")
        return View(self._hub, visitor, words, self._tokens.new(visitor), self._version, self._samples, note,
                    self._certificates, list(self._background.seen_by(visitor)), self._read_only)

    # ---- actions

    async def _act(self, request: web.BaseRequest, visitor: Visitor) -> web.Response:
        if not same_origin(request):
            return _text(403, "this form is not of this page")
        try:
            fields = await fields_of(request)
        except TooLarge:
            return _text(413, "the form is too large")
        if not self._tokens.good(visitor, fields.pop("token", "")):
            return _text(403, "this page is too old: load it again, and repeat what you did")
        name, back = fields.pop("action", ""), _back(fields.pop("back", "/"))
        sure = fields.pop("sure", "")
        view = self._view(visitor, {})
        if name in LINES or name == STOP:
            return self._act_in_background(view, name, fields, back, sure=sure == "yes")
        try:
            action, line, data = actions.command(name, fields)
            if action.hidden is not None and not visitor.secure:
                raise actions.BadForm("a secret may not travel unencrypted: use TLS, or the node's own machine")
        except actions.BadForm as error:
            return _html(400, page(view, "Not done", tag("p", f"{error}."), tag("p", link(back, "Back"))))
        if action.harm and sure != "yes":
            return _asked(view, name, fields, line, action.harm, back)
        outcome = await self._execute(visitor, data, here=action.here)
        audit.note(visitor.user, visitor.address, name, line, outcome)
        if not outcome.startswith("200"):
            return _html(409, page(
                view, "Not done" if outcome != UNKNOWN else "Perhaps done", tag("p", tag("code", line)),
                tag("p", outcome), tag("p", link(back, "Back")),
            ))
        return self._seen_later(back, f"{line}: {outcome}")

    def _act_in_background(
        self, view: View, name: str, fields: Mapping[str, str], back: str, *, sure: bool,
    ) -> web.Response:
        """Begin an action on all jobs of a filter, or stop one."""
        try:
            if name == STOP:
                self._background.stop(fields.get("number", ""), view.visitor)
                return self._seen_later("/background", "the action is being stopped")
            chosen = filter_of(fields, view.cluster.time_ms)
            if name in HARM and not sure:
                to = {"to": fields.get("to", "")} if name == MOVE else {}
                return _asked(view, name, {**chosen.fields, **to}, chosen.line, HARM[name], back)
            begun = self._background.begin(name, chosen, fields, view.visitor)
        except actions.BadForm as error:
            return _html(400, page(view, "Not done", tag("p", f"{error}."), tag("p", link(back, "Back"))))
        return self._seen_later("/background", f"begun: {begun.words}")

    async def close(self) -> None:
        """End all background actions, as the node stops."""
        await self._background.close()

    async def _execute(self, visitor: Visitor, data: bytes, *, here: bool) -> str:
        """Execute a command here or at the leader; returns the first line of the answer, or why there is none."""
        run = execute if here else execute_at_leader
        try:
            answer = await run(self._hub, visitor.user, visitor.address + audit.DASHBOARD, data)
        except NotLeader:
            return "no node leads at the moment, or it cannot be asked: try again"
        return answer.partition(b"\r\n")[0].decode("utf-8", "replace") or UNKNOWN

    def _seen_later(self, back: str, note: str) -> web.Response:
        number = secrets.token_urlsafe(12)
        self._notes[number] = note
        while len(self._notes) > NOTES_MAX:
            self._notes.pop(next(iter(self._notes)))
        to = f"{back}{'&' if '?' in back else '?'}{urlencode({'note': number})}"
        return web.Response(status=303, headers={**HEADERS, "Location": to})


def _back(path: str) -> str:
    """Return the path if it is one of the dashboard's, otherwise the path of the first page."""
    try:
        parts = urlsplit(path)
    except ValueError:                  # "//[::1"
        return "/"
    return path if not parts.scheme and not parts.netloc and parts.path in PAGES and path.isprintable() else "/"


def _asked(view: View, name: str, fields: Mapping[str, str], line: str, harm: str, back: str) -> web.Response:
    """Ask for confirmation of an action that destroys something."""
    return _html(200, page(view, "Are you sure?", section(
        "What it does", tag("p", tag("code", line)), tag("p", f"{harm[0].upper()}{harm[1:]}."),
        tag("div", form(view, name, "Yes, do it", {**fields, "sure": "yes"}, back=back), link(back, "No, go back"),
            class_="bar"),
    )))


def _not_found(view: View, sentence: str, above: tuple[str, str] | None = None) -> web.Response:
    """Return a page in the usual frame with the way back: to the list `above` and to the first page."""
    back = [*([above] if above else []), ("/", "Overview")]
    return _html(404, page(
        view, "Not found", tag("p", sentence), tag("p", "Go on at ", [
            [" or " if number else None, link(path, name)] for number, (path, name) in enumerate(back)
        ], "."), above=above, live=False,
    ))


def _html(status: int, document: str) -> web.Response:
    return web.Response(status=status, text=document, headers={**HEADERS, "Content-Type": "text/html; charset=utf-8"})


def _text(status: int, sentence: str, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=status, text=f"{sentence}\n", headers={**HEADERS, **(headers or {})})
