"""Clients that wait for turns of a pulse, all in one thread, and when the answer to each of them was surely written.

Nothing is known of the moment when a server writes. But on one machine a byte can be read as soon as it is written, and
the thread looks at all its connections every few milliseconds. So an answer was written after the last look that did
not find it and before it was read: both on one monotonic clock, however long the machine stalled in between.
"""

from __future__ import annotations

import random
import re
import select
import socket
import struct
import threading
import time
from types import TracebackType
from typing import Self

from msgspec import Struct

LOOK_S = 0.002          # how long a look waits when there is nothing to see
WITHIN_S = 1.0
PATIENCE_S = 0.5        # beyond that without an answer: then the server is taken for dead
AGAIN_S = 0.05          # before the next server is tried
GO = re.compile(rb"200 OK GO (\d+) 0")


class Grant(Struct, frozen=True):
    """A turn that a client was given. Times are those of time.monotonic()."""

    ticket: int
    client: int
    session: str | None
    request: int | None         # its number in that session
    after: float                # it was written after this
    before: float               # and before this
    server: str = ""            # by this one
    told: bool = False          # its client still listened there, and reported the end of the turn at once


class _Conversation:
    """A connection to a server. `client`: None when its client has given it up; it is still looked at."""

    def __init__(self, client: _Client | None, connection: socket.socket, whose: int, server: str) -> None:
        self.client = client
        self.server = server
        self.socket = connection
        self.whose = whose
        self.session: str | None = None
        self.request: int | None = None
        self.received = b""
        self.sent_at = time.monotonic()

    def say(self, line: str) -> None:
        """Send a line, and note when that was."""
        self.sent_at = time.monotonic()
        self.socket.send(line.encode() + b"\r\n")


class _Client:
    """Waits for a turn, reports OK, waits for the next."""

    def __init__(self, number: int, *, in_session: bool) -> None:
        self.number = number
        self.in_session = in_session
        self.session: str | None = None
        self.request = 0                # the last one used
        self.open_request = False       # it has no answer yet, and will be repeated
        self.server = number
        self.conversation: _Conversation | None = None
        self.dials_at = 0.0


class TurnClients:
    """`with TurnClients(addresses, "p", 200) as clients:` they wait for turns; every second one has a session."""

    def __init__(self, servers: list[str], pulse: str, count: int, seed: int = 0) -> None:
        self.grants: list[Grant] = []
        self.strange: list[bytes] = []          # unexpected answers
        self.sleep_next: float | None = None    # the next turn is answered with SLEEP, for this time
        self.slept: tuple[float, float] | None = None       # when that was sent and when it was acknowledged
        self._servers = [server.rpartition(":") for server in servers]
        self._pulse = pulse
        self._random = random.Random(seed)
        self._clients = [_Client(number, in_session=bool(number % 2)) for number in range(count)]
        self._poll = select.epoll()
        self._conversations: dict[int, _Conversation] = {}
        self._sleeper: _Conversation | None = None
        self._vanish = 0
        self._looked_at = time.monotonic()
        self._ended = threading.Event()
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, name="turns", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        for conversation in self._conversations.values():
            conversation.socket.close()
        self._poll.close()
        if self._error is not None and error is None:
            raise self._error

    def vanish(self, count: int) -> None:
        """Reset the connections of this many waiting clients at once; others take their place."""
        self._vanish += count

    # the thread

    def _run(self) -> None:
        try:
            while not self._ended.is_set():
                self._look()
                self._care()
        except BaseException as error:
            self._error = error

    def _look(self) -> None:
        not_before, self._looked_at = self._looked_at, time.monotonic()
        for number, _ in self._poll.poll(LOOK_S, len(self._conversations) + 1):
            conversation = self._conversations[number]
            ended = False
            try:
                while True:
                    data = conversation.socket.recv(1 << 16)
                    conversation.received += data
                    if not data:
                        ended = True
                        break
            except BlockingIOError:
                pass
            except OSError:
                ended = True
            now = time.monotonic()
            while b"\n" in conversation.received:
                line, _, conversation.received = conversation.received.partition(b"\n")
                self._heard(conversation, line.rstrip(b"\r"), max(not_before, conversation.sent_at), now)
            if ended and number in self._conversations:
                self._hang_up(conversation)

    def _care(self) -> None:
        """Connect, give up silent servers, and let clients vanish."""
        now = time.monotonic()
        for client in self._clients:
            conversation = client.conversation
            if conversation is None:
                if now >= client.dials_at:
                    self._dial(client)
            elif now > conversation.sent_at + WITHIN_S + PATIENCE_S:
                conversation.client = None
                client.conversation = None
                client.server += 1
        if self._vanish:
            waiting = [client for client in self._clients if client.conversation is not None]
            for client in self._random.sample(waiting, min(self._vanish, len(waiting))):
                assert client.conversation is not None
                client.conversation.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self._hang_up(client.conversation)
                client.session = None           # another one
            self._vanish = 0

    def _dial(self, client: _Client) -> None:
        server = host, _, port = self._servers[client.server % len(self._servers)]
        try:
            connection = socket.create_connection((host, int(port)), 0.2)
        except OSError:
            client.server += 1
            client.dials_at = time.monotonic() + AGAIN_S
            return
        connection.setblocking(False)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        conversation = client.conversation = _Conversation(client, connection, client.number, "".join(server))
        self._conversations[connection.fileno()] = conversation
        self._poll.register(connection, select.EPOLLIN)
        if not client.in_session:
            self._wait(conversation)
        elif client.session is None:
            conversation.say("SESSION TTL 60")
        else:
            conversation.say(f"SESSION {client.session}")

    def _wait(self, conversation: _Conversation) -> None:
        client = conversation.client
        assert client is not None
        number = ""
        if client.in_session:
            if not client.open_request:
                client.request += 1
                client.open_request = True
            conversation.session, conversation.request = client.session, client.request
            number = f"REQ {client.request} "
        conversation.say(f"{number}PULSE WAIT {self._pulse} WITHIN {WITHIN_S}")

    def _hang_up(self, conversation: _Conversation) -> None:
        del self._conversations[conversation.socket.fileno()]
        self._poll.unregister(conversation.socket)
        conversation.socket.close()
        client = conversation.client
        if client is not None:
            client.conversation = None
            client.server += 1
            client.dials_at = time.monotonic() + AGAIN_S

    # answers

    def _heard(self, conversation: _Conversation, line: bytes, after: float, before: float) -> None:
        go = GO.fullmatch(line)
        if go is not None:
            self.grants.append(Grant(
                int(go[1]), conversation.whose, conversation.session, conversation.request, after, before,
                conversation.server, conversation.client is not None,
            ))
        client = conversation.client
        if client is None:
            return
        if go is not None:
            client.open_request = False
            self._tell(conversation, int(go[1]))
        elif line == b"200 OK" or line == b"404 Ticket Not Found":      # a result was acknowledged
            if conversation is self._sleeper and self.slept is not None:
                self.slept = self.slept[0], before
                self._sleeper = None
            self._wait(conversation)
        elif line.startswith(b"200 OK SESSION "):
            session = line.split()[3].decode()
            if session != client.session:
                client.session, client.request, client.open_request = session, 0, False
            self._wait(conversation)
        elif line == b"408 Wait Timeout":
            client.open_request = False
            self._wait(conversation)
        elif line == b"404 Session Not Found":
            client.session = None
            conversation.say("SESSION TTL 60")
        elif line in (b"500 Offline Mode", b"504 Outcome Unknown"):
            self._hang_up(conversation)
        else:
            self.strange.append(line)
            self._hang_up(conversation)

    def _tell(self, conversation: _Conversation, ticket: int) -> None:
        if self.sleep_next is None:
            conversation.say(f"PULSE RESULT {ticket} OK")
            return
        length_s, self.sleep_next = self.sleep_next, None
        self._sleeper = conversation
        self.slept = time.monotonic(), 0.0
        conversation.say(f"PULSE RESULT {ticket} SLEEP {length_s}")
