"""A private toxiproxy-server, and the faults that its proxies can apply to connections.

The effects of the server's toxics were measured, and test_proxies.py checks them. TO is the direction from dialer to
listener, FRO the other one.

* `cut`: connections end in an orderly way (FIN) on both sides, new ones are refused.
* `silence` (toxic `latency` of an hour): a black hole, as TCP sees a network without a way through. Nothing arrives,
  also on connections made then (they are accepted, because toxiproxy accepts); both sides stay open. What is sent
  is kept, in the proxy and, when that is full, in the sender's socket, and ARRIVES AFTER `heal`, in order and complete,
  even if its sender has closed or died by then: late messages of dead connections. The end of a connection does not
  arrive either when data are held before it; it passes on a connection that carries nothing.
* `silence(.., lost=True)` (toxic `timeout` 0): what is sent vanishes, the end of a connection always passes, and `heal`
  ends the connections (a stream with a hole in it would be worse than none), also those without traffic.
* `reset` (toxic `reset_peer`): each connection ends at its next bytes in that direction. Those made while the toxic is
  there end by RST, those that stood before by FIN.
* `limit`: each connection passes this number of bytes from now on in that direction, then ends; 0: at the first byte.
* `slow_close`: data pass, the end of a connection is passed on after a delay. `heal` before that passes it on at once.
* `half_open`: one end of each connection learns at its next bytes that it has ended, the other end never.
* `delay`, `throttle`, `slice`: as named; nothing is lost, not even by `heal`.

To change eight proxies takes 15 to 100 ms, most of it in this process. The server cannot change the toxics of a proxy
while a receiver does not read and all buffers before it are full (a stopped process under load), and never can again if
that connection is closed meanwhile, nor take away a `throttle` with a backlog for a receiver that has gone; such a
proxy is replaced by a new one after some seconds, which ends its connections.
"""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Container, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import toxiproxy

from devcluster.guardian import Guardian
from devcluster.ports import HOST, free_ports
from tests.chaos.proxies.sockets import established
from tests.chaos.proxies.toxiproxy_api import NoAnswerError, ToxiproxyError, calls_to, update_toxic

TO, FRO = "upstream", "downstream"      # toxiproxy's words
BOTH = (TO, FRO)
NEVER_MS = 3_600_000
ATTEMPTS = 20
START_S = 10.0
AT_ONCE = 8                             # proxies changed at the same time
LOCAL = Path(__file__).parents[3] / ".tools" / "toxiproxy-server"


def program() -> Path | None:
    """Return the server program: on PATH, or built by make; None when there is none."""
    found = shutil.which("toxiproxy-server")
    if found:
        return Path(found)
    return LOCAL if LOCAL.exists() else None


class Link:
    """One proxy: what is sent to `address` goes to `upstream`. Healthy at first."""

    def __init__(self, proxies: Proxies, proxy: toxiproxy.Proxy) -> None:
        self.name: str = proxy.name
        self.address: str = proxy.listen
        self.upstream: str = proxy.upstream
        self._proxies = proxies
        self._proxy = proxy
        self._toxics: dict[str, dict[str, Any]] = {}    # in the order in which they were added
        # To take away a toxic that holds data for a connection whose ends have both gone takes the server five seconds,
        # in which it accepts no other. So those that hold data for long are never taken away but let everything pass.
        # (Only `latency` can be changed so: the server dies now and then when the rate of a `bandwidth` that holds data
        # is raised, because it slices a chunk by the new rate that it has measured by the old one.)
        self._open: set[str] = set()
        self._cut = False

    def __repr__(self) -> str:
        return self.name

    # what is there

    @property
    def connections(self) -> int:
        """Return how many connections to the proxy are open now."""
        return established(self.address)

    @property
    def accepted(self) -> int:
        """Return how many connections were accepted since the proxy was made."""
        return self._proxies.accepted(self.name)

    @property
    def condition(self) -> frozenset[str]:
        """Return the present faults of the link: `heal` can return to them."""
        return frozenset(name for name in self._toxics if name not in self._open) | ({"cut"} if self._cut else set())

    # faults

    def cut(self) -> None:
        """End all connections, refuse new ones."""
        self._cut = True
        self._call(self._proxy.disable)

    def silence(self, *directions: str, lost: bool = False) -> None:
        """Stop all traffic in these directions, None for both. `lost`: see above."""
        for direction in directions or BOTH:
            if lost:
                self.add("timeout", direction, timeout=0)
            else:
                self._add("silence", "latency", direction, latency=NEVER_MS)

    def reset(self, *directions: str, after_ms: int = 0) -> None:
        """End every connection some time after its next bytes in one of these directions."""
        for direction in directions or BOTH:
            self.add("reset_peer", direction, timeout=after_ms)

    def delay(self, ms: int, jitter_ms: int = 0, *directions: str) -> None:
        """Delay everything by `ms` ± `jitter_ms` each way (jitter must not be greater)."""
        for direction in directions or BOTH:
            self.add("latency", direction, latency=ms, jitter=jitter_ms)

    def throttle(self, kb_per_s: int, *directions: str) -> None:
        """Limit each connection and direction to this many thousand bytes a second."""
        for direction in directions or BOTH:
            self.add("bandwidth", direction, rate=kb_per_s)

    def slice(self, size: int, variation: int = 0, delay_us: int = 0, *directions: str) -> None:
        """Deliver data in small pieces of `size` ± `variation` bytes, with a pause after each."""
        for direction in directions or BOTH:
            self.add("slicer", direction, average_size=size, size_variation=variation, delay=delay_us)

    def slow_close(self, ms: int, *directions: str) -> None:
        """Delay the notice to one side that the other has closed."""
        for direction in directions or BOTH:
            self.add("slow_close", direction, delay=ms)

    def limit(self, size: int, direction: str) -> None:
        """End a connection after `size` further bytes in this direction."""
        self.add("limit_data", direction, bytes=size)

    def half_open(self, direction: str) -> None:
        """At the next bytes in this direction their receiver loses the connection; their sender does not notice before
        `heal`."""
        back = FRO if direction == TO else TO
        self.add("slow_close", back, delay=NEVER_MS)
        self.add("limit_data", direction, bytes=0)

    def add(self, kind: str, direction: str, **attributes: int) -> None:
        """Add a toxic; one of a kind and direction."""
        self._add(kind, kind, direction, **attributes)

    def _add(self, fault: str, kind: str, direction: str, **attributes: int) -> None:
        name = f"{fault}_{direction}"
        if name in self._toxics and name not in self._open:
            raise ValueError(f"{self.name} has {name} already")
        toxic = self._toxics[name] = {"type": kind, "stream": direction, "name": name, "attributes": attributes}
        try:
            if name in self._open:
                self._open.discard(name)
                self._change(functools.partial(update_toxic, self.name, name, **attributes))
            else:
                self._change(functools.partial(self._proxy.add_toxic, **toxic))
        except ToxiproxyError:
            del self._toxics[name]
            raise

    def heal(self, condition: frozenset[str] = frozenset()) -> None:
        """Restore the initial condition, or this one. Data that were held arrive."""
        for name, toxic in self._toxics.items():
            if toxic["type"] == "latency" and name not in self._open | condition:
                self._open.add(name)
                toxic["attributes"] = {"latency": 0, "jitter": 0}
                self._change(functools.partial(update_toxic, self.name, name, latency=0, jitter=0))
        for name in reversed([name for name in self._toxics if name not in self._open | condition]):
            del self._toxics[name]                  # the last one first: the one before it may be stuck behind it
            self._change(functools.partial(self._proxy.destroy_toxic, name))
        if "cut" not in condition:
            self._enable()

    def _enable(self) -> None:
        for _ in range(ATTEMPTS):
            try:
                self._call(self._proxy.enable)
                self._cut = False
                return
            except NoAnswerError:
                raise
            except ToxiproxyError:                  # somebody's outgoing connection has the port for a moment
                time.sleep(0.1)
        raise ToxiproxyError(f"{self.name} cannot listen on {self.address} again")

    def _change(self, what: Callable[[], Any]) -> None:
        """Change the toxics, or replace the proxy if that is stuck."""
        try:
            self._call(what)
        except NoAnswerError:
            self._call(self._proxy.destroy)
            self._call(self._create)
            for toxic in self._toxics.values():
                self._call(functools.partial(self._proxy.add_toxic, **toxic))

    def _create(self) -> None:
        self._proxy = toxiproxy.Toxiproxy().create(self.upstream, self.name, self.address)

    def _call(self, what: Callable[[], Any]) -> None:
        with calls_to(self._proxies.server):
            what()


class Proxies:
    """A toxiproxy-server on a free port; it ends with `close`, and when this process ends in any way."""

    def __init__(self) -> None:
        """Start the server; raises ToxiproxyError."""
        path = program()
        if path is None:
            raise ToxiproxyError("there is no toxiproxy-server: install it, or Go and say `make toxiproxy`")
        self._folder = Path(tempfile.mkdtemp(prefix="toxiproxy-"))
        self._log = self._folder / "log"
        self._guardian = Guardian(self._folder)
        self._pool = ThreadPoolExecutor(AT_ONCE, "toxiproxy")
        self._process: subprocess.Popen[bytes] | None = None
        self.server = ""
        try:
            self._start(path)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """End the server: every connection through it ends."""
        self._pool.shutdown()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._guardian.forget(self._process.pid)
        self._guardian.close()

    def __enter__(self) -> Proxies:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def create(self, name: str, upstream: str, avoid: Container[int] = ()) -> Link:
        """Create a proxy to `upstream`, on a free port that is not in `avoid`."""
        for _ in range(ATTEMPTS):
            (port,) = free_ports(1)
            if port in avoid:
                continue
            try:
                with calls_to(self.server):
                    return Link(self, toxiproxy.Toxiproxy().create(upstream, name, f"{HOST}:{port}"))
            except ToxiproxyError as error:
                if "address already in use" not in str(error):
                    raise
        raise ToxiproxyError("no free port")

    def remove_all(self) -> None:
        """Remove all proxies."""
        with calls_to(self.server):
            toxiproxy.Toxiproxy().destroy_all()

    def together(self, links: Iterable[Link], what: Callable[[Link], None]) -> None:
        """Do the same to several proxies at the same time, and to all of them even if one fails; raises the first
        error."""
        waiting = [self._pool.submit(what, link) for link in links]
        errors = [error for one in waiting if (error := one.exception()) is not None]
        if errors:
            raise errors[0]

    def accepted(self, name: str) -> int:
        """Return how many connections the proxy of this name has accepted."""
        lines = [line for line in self.log().splitlines() if "Accepted client" in line and line.endswith("}")]
        return sum(json.loads(line)["name"] == name for line in lines)

    def log(self) -> str:
        """Return the server's output."""
        return self._log.read_text("utf-8", "replace")

    def _start(self, path: Path) -> None:
        for _ in range(ATTEMPTS):
            (port,) = free_ports(1)
            with self._log.open("wb") as log:
                self._process = subprocess.Popen(
                    [path, "-host", HOST, "-port", str(port)], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                    env={"LOG_LEVEL": "info"}, start_new_session=True,
                )
            self._guardian.watch(self._process.pid)
            if self._answers(self._process, f"{HOST}:{port}"):
                self.server = f"{HOST}:{port}"
                return
            self._process.kill()                        # somebody else has the port
            self._process.wait()
            self._guardian.forget(self._process.pid)
        raise ToxiproxyError(f"toxiproxy-server does not start: {self.log()[-2000:]}")

    def _answers(self, process: subprocess.Popen[bytes], server: str) -> bool:
        until = time.monotonic() + START_S
        while time.monotonic() < until and "Server finished with error" not in self.log() and process.poll() is None:
            try:
                with calls_to(server):
                    return not toxiproxy.Toxiproxy().proxies()
            except ToxiproxyError:
                time.sleep(0.01)
        return False
