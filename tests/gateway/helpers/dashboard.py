"""A gateway with a dashboard in front of the fake cluster, and a simple browser."""

from __future__ import annotations

import asyncio
import base64
import re
from collections.abc import Awaitable, Callable
from urllib.parse import urlencode

import uvloop

from sockpqd.gateway import rights
from sockpqd.gateway.auth.users_file import Account
from sockpqd.gateway.dashboard import Dashboard, execute
from sockpqd.gateway.monitoring import HttpPages, HttpServer, LoopLag, Sources, start
from sockpqd.gateway.rights import Rights
from sockpqd.gateway.samples import FigureSampler
from tests.gateway.helpers.sockets import Gateway

PATIENCE_S = 60.0
HOST = "127.0.0.1"
SCRIPT = r' src="/assets/(script|charts|uplot)\.js\?v=[0-9a-f]+" defer></script>'
XSS = '"><script>alert(1)</script><img src=x onerror=alert(1)>'


class Users:
    """Users with a secret each, as the HTTP port and the guard of commands see them."""

    known = {"eva": rights.of_text("admin"), "max": rights.of_text("put:mail*,queue:mail*"),
             "tom": rights.of_text("get,group:b*,item:order_*"), "bare": rights.of_text("-")}

    async def check(self, user: str, secret: str, peer: str) -> Rights | None:
        return self.known.get(user) if secret == "secret" else None


class Site:
    """A gateway with a dashboard, and a simple browser."""

    def __init__(self, users: Users | None, *, read_only: bool = False) -> None:
        self.gateway = Gateway()
        self.hub, self.cluster = self.gateway.hub, self.gateway.cluster
        self.users = users
        if users is not None:
            self.hub.access.required = True
            self.hub.access.file_users = {
                name: Account(known, None, None) for name, known in users.known.items()
            }
        sources = Sources(self.hub, "1.2.3", LoopLag(), lambda: 0, list)
        self.samples = FigureSampler(self.hub, sources.loop_lag)
        self.dashboard = Dashboard(self.hub, users, "1.2.3", self.samples, read_only=read_only)
        self.pages = HttpPages(sources, users, self.dashboard)
        self.user: str | None = None if users is None else "eva"
        self.secret = "secret"

    async def __aenter__(self) -> Site:
        await self.gateway.start()
        self.http: HttpServer = await start(self.gateway.doors, HOST, 0, None, self.pages, self.hub)
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.http.close()
        await self.gateway.close()

    async def ask(self, method: str, path: str, body: str = "", **headers: str) -> tuple[int, dict[str, str], str]:
        """Return status, headers and body."""
        given = {"Host": f"{HOST}:{self.http.address[1]}", "Content-Length": str(len(body.encode()))}
        if self.user is not None:
            given["Authorization"] = "Basic " + base64.b64encode(f"{self.user}:{self.secret}".encode()).decode()
        given |= {name.replace("_", "-"): value for name, value in headers.items()}
        head = f"{method} {path} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in given.items())
        reader, writer = await asyncio.open_connection(*self.http.address)
        try:
            writer.write(f"{head}\r\n{body}".encode())
            answer = (await asyncio.wait_for(reader.read(-1), PATIENCE_S)).decode()
        finally:
            writer.close()
        head, _, content = answer.partition("\r\n\r\n")
        first, *rest = head.split("\r\n")
        return int(first.split()[1]), dict(line.split(": ", 1) for line in rest), content

    async def get(self, path: str, status: int = 200) -> str:
        """Return the page, after checks that hold for all pages."""
        found, headers, body = await self.ask("GET", path)
        assert found == status, body
        assert headers["Content-Security-Policy"].startswith("default-src 'none'")
        assert "unsafe" not in headers["Content-Security-Policy"]
        assert "style=" not in body
        assert not re.search(f"<script(?!{SCRIPT})", body)
        return body

    async def token(self) -> str:
        """Return the token of the forms."""
        return await self.of_form(await self.get("/queues"))

    async def of_form(self, page: str) -> str:
        match = re.search(r'name="token" value="([0-9a-f]+)"', page)
        assert match is not None
        return match[1]

    async def act(self, action: str, token: str | None = None, **fields: str) -> tuple[int, str, str]:
        """Submit a form and confirm it; returns status, location and page."""
        form = {"token": await self.token() if token is None else token, "action": action, "sure": "yes", **fields}
        status, headers, page = await self.ask("POST", "/act", urlencode(form))
        return status, headers.get("Location", ""), page

    async def say(self, data: bytes) -> bytes:
        """Send a line as a client of the protocol who may do everything."""
        if self.users is not None:
            return await execute(self.hub, "eva", f"{HOST}:1", data)
        client = await self.gateway.connect()
        client.send(data)
        client.writer.write_eof()
        return await client.rest()


def run(test: Callable[[Site], Awaitable[None]], users: Users | None = None, *, read_only: bool = False) -> None:
    async def around() -> None:
        async with Site(users, read_only=read_only) as found:
            await test(found)

    uvloop.run(asyncio.wait_for(around(), 3 * PATIENCE_S))
