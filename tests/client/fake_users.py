"""The users of a FakeCluster and their rights: AUTH in both its forms, and USER."""

from __future__ import annotations

import hashlib
import hmac
import secrets
import socket

OPEN = ("AUTH", "PING", "CAPS", "QUIT")


class FakeUsers:
    """The users, and the connections that have authenticated. `in_file` cannot be changed; they may use all but
    `forbidden` verbs.
    """

    def __init__(self, in_file: dict[str, str]) -> None:
        self.in_file = in_file
        self.in_log: dict[str, tuple[str, str]] = {}        # name -> rights, secret
        self.forbidden: set[str] = set()
        self.attempts: list[str] = []                       # the lines of AUTH
        self._entered: dict[socket.socket, str] = {}
        self._nonces: dict[socket.socket, tuple[str, bytes]] = {}

    def refuse(self, connection: socket.socket, words: list[str]) -> bytes | None:
        """Return the answer to AUTH, or the refusal of this command; None when it may be executed."""
        if words[0] == "AUTH":
            self.attempts.append(" ".join(words))
            return self._auth(connection, words[1:])
        if words[0] in OPEN:
            return None
        if self._secret(self._entered.get(connection)) is None:
            return b"401 Auth Required\r\n"
        return b"403 Forbidden\r\n" if words[0] in self.forbidden else None

    def forget(self, connection: socket.socket) -> None:
        """Forget a closed connection."""
        self._entered.pop(connection, None)
        self._nonces.pop(connection, None)

    def forget_all(self) -> None:
        """Forget who has authenticated, as a secret was replaced: clients must authenticate again."""
        self._entered.clear()

    def execute(self, words: list[str]) -> bytes:
        """Execute USER SET, USER DELETE, USER LIST."""
        verb, *rest = words
        if verb == "LIST":
            lines = [f"{name} admin FILE\r\n" for name in sorted(self.in_file)]
            lines += [f"{name} {rights} LOG\r\n" for name, (rights, _) in sorted(self.in_log.items())]
            return f"200 OK {len(lines)}\r\n{''.join(lines)}".encode()
        if rest[0] in self.in_file:
            return b"409 User In File\r\n"
        if verb == "SET":
            self.in_log[rest[0]] = rest[1], bytes.fromhex(rest[2]).decode()
        elif self.in_log.pop(rest[0], None) is None:
            return b"404 User Not Found\r\n"
        else:
            self._entered = {one: name for one, name in self._entered.items() if name != rest[0]}
        return b"200 OK\r\n"

    def _auth(self, connection: socket.socket, words: list[str]) -> bytes:
        challenged = self._nonces.pop(connection, None)
        if len(words) == 2:
            return self._judge(connection, words[0], words[1] == self._secret(words[0]))
        if challenged:
            user, nonce = challenged
            proof = hmac.new((self._secret(user) or "").encode(), nonce, hashlib.sha256).hexdigest()
            return self._judge(connection, user, words[0] == proof)
        self._nonces[connection] = words[0], secrets.token_bytes(16)
        return f"334 {self._nonces[connection][1].hex()}\r\n".encode()

    def _judge(self, connection: socket.socket, user: str, good: bool) -> bytes:
        if not good:
            return b"403 Forbidden\r\n"
        self._entered[connection] = user
        return b"200 OK\r\n"

    def _secret(self, user: str | None) -> str | None:
        if user in self.in_log:
            return self.in_log[user][1]
        return self.in_file.get(user) if user else None
