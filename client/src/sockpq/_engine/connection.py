"""One connection to one server: commands go in, answers come out.

CLUSTER ID is sent first and, if there is a user, AUTH. A command that changes nothing is sent without waiting for their
answers, as is the opening of a session, usually the first command on a connection, so no time is lost. Any other
command waits, as it must be executed neither in another cluster nor after a refusal of the secret.
"""

from __future__ import annotations

import socket
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, TypeAlias

from sockpq._backends.access import Access, Login
from sockpq._backends.base import Network, Stream
from sockpq._engine.retry import ForeignServer, Lost, NotRecognizedAnyMore
from sockpq._protocol.addresses import Address
from sockpq._protocol.command import Command
from sockpq._protocol.commands.cluster import CLUSTER_ID
from sockpq._protocol.commands.connection import SESSION_CLOSE
from sockpq._protocol.protocol import Answer, Protocol
from sockpq._protocol.session import Session
from sockpq.errors import (
    AuthError,
    BadArguments,
    Busy,
    ForbiddenError,
    NotSupported,
    ProtocolError,
)

# Called with a server, the id of its cluster and its name in the map; raises ForeignServer unless it may be used.
OfCluster: TypeAlias = Callable[[Address, str, str | None], None]

TINY_S = 0.001          # a timeout that is over still takes what is there


class Connection:
    """An open connection. For one call at a time, except `abort`."""

    def __init__(self, address: Address, stream: Stream, now: Callable[[], float]) -> None:
        """`address`: the server's, as it was dialed; `now`: the monotonic clock."""
        self.address = address
        self.protocol = Protocol()
        self.session: Session | None = None     # the one it speaks for
        self.sessionless_until = 0.0            # it has none to give before then
        self.caps: frozenset[str] | None = None     # what it says that it knows, once it was asked
        self._stream = stream
        self._now = now
        self.withdrawn = False                  # somebody else takes back what is blocked on it
        self.cluster: str | None = None         # its id; None when the server cannot say it
        self.leaderless = False                 # it cannot because it has not heard of a leader
        self._finished = False
        self._recognized = False                # it has accepted AUTH
        self._entering: deque[tuple[str, Callable[[Answer], None]]] = deque()   # what has no answer, and its judge

    @classmethod
    async def open(
        cls, network: Network, address: Address, timeout: float, of_cluster: OfCluster, *,
        login: bool = True,
    ) -> Connection:
        """Connect within `timeout` seconds, ask for the cluster, and send AUTH if there is a user.

        `of_cluster` raises ForeignServer if the client does not use that cluster. Without `login` the connection is
        good for PING only. Raises Lost, Untrusted, AuthError, Busy.
        """
        until = network.now() + timeout
        network.access.read_again()
        try:
            stream = await network.connect(address, timeout)
        except TimeoutError as error:
            raise Lost(f"{address}: not connected within {timeout:g} s", sent=False) from error
        except (OSError, ValueError) as error:      # ValueError: a name that DNS, or a certificate, cannot spell
            raise Lost(f"{address}: {_in_words(error)}", sent=False) from error
        connection = cls(address, stream, network.now)
        try:
            await connection._introduce(network.access, login, of_cluster, until)
        except BaseException:
            connection.close()
            raise
        return connection

    async def enter(self, timeout: float) -> None:
        """Wait until the commands sent ahead are answered; raises Lost, AuthError, Busy."""
        until = self._now() + timeout
        try:
            while self._entering:
                await self.receive(max(until - self._now(), TINY_S))
                if self._entering and self._now() >= until:
                    raise TimeoutError
        except (TimeoutError, Lost, ProtocolError) as error:
            raise self._unanswered(error) from error

    async def send(self, command: Command[Any], number: int, timeout: float) -> bool:
        """Send one command; return whether it was handed over completely.

        Otherwise it is not executed, and the connection is lost.
        """
        line, data = self.protocol.send(command, number)
        size = len(line) + len(data)
        return await self._stream.send((line, data) if data else (line,), timeout) == size

    async def send_many(self, requests: Sequence[tuple[Command[Any], int]], timeout: float) -> int:
        """Send commands; returns how many were handed over completely: less than all means the connection is lost.

        `timeout` seconds limit the time without progress. A command that was not handed over completely cannot be
        executed, as the server never receives its last byte.
        """
        parts = [self.protocol.send(command, number) for command, number in requests]
        buffers = [b"".join(chain.from_iterable(parts))] if len(parts) > 1 else parts[0]
        sent = await self._stream.send(buffers, timeout)
        if sent == sum(map(len, buffers)):
            return len(parts)
        for count, (line, data) in enumerate(parts):
            sent -= len(line) + len(data)
            if sent < 0:
                return count
        return len(parts)

    async def add(self, data: bytes, timeout: float) -> None:
        """Send further bytes of the last command; raises Lost."""
        if await self._stream.send((data,), timeout) < len(data):
            raise self.lost("the connection broke while sending")

    async def receive(self, timeout: float) -> list[Answer]:
        """Return the answers in the next bytes, possibly none yet; waits at most `timeout` seconds for these.

        Raises TimeoutError, Lost when the connection has ended, ProtocolError for bytes that are not the protocol,
        ForeignServer (a Lost), AuthError and Busy from the answers to CLUSTER ID and AUTH.
        """
        try:
            data = await self._stream.receive(timeout)
        except TimeoutError:
            raise
        except OSError as error:
            raise self.lost(_in_words(error)) from error
        if not data:
            raise self.lost("the server closed the connection", orderly=not self.protocol.amid_answer)
        try:
            answers = self.protocol.receive(data)
        except ProtocolError as error:
            raise ProtocolError(f"{self.address}: {error}") from error
        while self._entering and answers:
            _, judge = self._entering.popleft()
            judge(answers.pop(0))
        return self._recognized_again(answers) if self._recognized else answers

    def _recognized_again(self, answers: list[Answer]) -> list[Answer]:
        """Detect that the server wants AUTH again, although it was accepted here, as opposed to other refusals."""
        for place, answer in enumerate(answers):
            if type(answer.error) is AuthError:
                answers[place] = Answer(answer.value, NotRecognizedAnyMore(f"{self.address}: {answer.error}"))
        return answers

    def lost(self, reason: str, orderly: bool = False) -> Lost:
        """Return the error for commands that were sent completely and will get no answer here."""
        return Lost(f"{self.address}: {reason}", sent=True, waiting=self.protocol.waiting, orderly=orderly)

    @property
    def entering(self) -> bool:
        """True if a command that was sent ahead has no answer yet."""
        return bool(self._entering)

    @property
    def at_rest(self) -> bool:
        """True if every command is answered and another one may be sent."""
        return self.protocol.at_rest and not self._finished

    def usable(self) -> bool:
        """Return whether it is open, at rest, and has received no unexpected bytes.

        A connection that could not name its cluster is not usable.
        """
        return self.at_rest and not self.leaderless and self._stream.quiet()

    def peer(self) -> Address:
        """Return the numeric address of the server."""
        return self._stream.peer()

    def expires_at(self) -> int | None:
        """Return the end of the server's certificate in Unix time; None without TLS."""
        return self._stream.expires_at()

    def finish(self) -> None:
        """Signal the end of input to the server, which cancels a blocked command and closes."""
        self._finished = True
        self._stream.finish()

    def withdraw(self) -> None:
        """Finish, as `finish` does, called from a thread other than the one that waits for the blocked command."""
        self._finished = self.withdrawn = True
        self._stream.withdraw()

    def abort(self) -> None:
        """End the connection from another thread, waking the one that waits on it."""
        self._stream.abort()

    def close(self, session: bool = False) -> None:
        """Close it, and with `session` end its session, without waiting for the answer."""
        self._stream.close(SESSION_CLOSE if session and self.session and self.at_rest else b"")

    async def _introduce(
        self, access: Access, login: bool, of_cluster: OfCluster, until: float
    ) -> None:
        """Ask for the cluster, and send AUTH: with the secret on a secure connection, otherwise with a proof of it."""
        self._entering.append(("CLUSTER ID", partial(self._judge_cluster, of_cluster)))
        user = access.login if login else None
        if user is None:
            await self._ahead(until, CLUSTER_ID)
            return
        if access.tls is not None or self._is_loopback():
            await self._ahead(until, CLUSTER_ID, user.plain())
        else:
            answer = await self._challenge(user, until)
            if answer.error:
                self._judge(access, user, answer)
                return
            await self._ahead(until, user.response(answer.value))
        self._entering.append(("AUTH", partial(self._judge, access, user)))

    async def _ahead(self, until: float, *commands: Command[Any]) -> None:
        timeout = max(until - self._now(), TINY_S)
        if await self.send_many([(command, 0) for command in commands], timeout) < len(commands):
            raise Lost(f"{self.address}: the connection broke while sending", sent=False)

    def _is_loopback(self) -> bool:
        """Return whether a secret may be sent there, because nobody else can read what stays on this machine."""
        try:
            peer = self.peer()
        except OSError as error:
            raise Lost(f"{self.address}: {_in_words(error)}", sent=False) from error
        return peer.host == "::1" or peer.host.removeprefix("::ffff:").startswith("127.")

    async def _challenge(self, login: Login, until: float) -> Answer:
        """Ask for the cluster and for a nonce; raises Lost."""
        try:
            await self._ahead(until, CLUSTER_ID, login.challenge())
            while True:
                answers = await self.receive(max(until - self._now(), TINY_S))
                if answers:
                    return answers[0]
                if self._now() >= until:
                    raise TimeoutError
        except (TimeoutError, Lost, ProtocolError) as error:
            raise self._unanswered(error) from error

    def _unanswered(self, error: Exception) -> Lost:
        if isinstance(error, ForeignServer):
            return error
        why = "" if isinstance(error, TimeoutError) else f": {error}"
        what = self._entering[0][0] if self._entering else "AUTH"
        return Lost(f"{self.address}: no answer to {what}{why}", sent=False)

    def _judge_cluster(self, of_cluster: OfCluster, answer: Answer) -> None:
        """Check the answer to CLUSTER ID; any answer of a server too old to know it is accepted."""
        if isinstance(answer.error, Busy):
            self._finished = True
            raise answer.error
        if answer.error:
            return
        self.cluster = answer.value.id
        self.leaderless = self.cluster is None
        if self.cluster is not None:
            try:
                of_cluster(self.address, self.cluster, answer.value.name)
            except ForeignServer:
                self._finished = True
                raise

    def _judge(self, access: Access, login: Login, answer: Answer) -> None:
        """Judge the answer to AUTH. A server that does not know AUTH has no users, and requires none.

        After a refusal of a secret that has been replaced since, the next connection may succeed.
        """
        error = answer.error
        if error is None or isinstance(error, BadArguments | NotSupported):
            self._recognized = error is None
            return
        self._finished = True
        if isinstance(error, ForbiddenError):
            if access.is_outdated(login):
                raise Lost(f"{self.address}: the file with the secret of {login.user!r} has changed", sent=False)
            raise AuthError(f"{self.address}: the server refuses user {login.user!r} with this secret") from error
        raise error


def _in_words(error: Exception) -> str:
    """Describe in words why a connection failed or was lost, without error numbers."""
    if isinstance(error, ConnectionRefusedError):
        return "nobody listens there (connection refused)"
    if isinstance(error, socket.gaierror):
        return f"its name cannot be resolved ({(error.strerror or str(error)).lower()})"
    if isinstance(error, OSError) and error.strerror:
        return error.strerror.lower()
    return str(error)
