"""Who may use this node: the users of the file and those of the log, and how they prove who they are.

An attempt with a wrong secret, of an unknown user, or of one who cannot prove himself that way takes the same steps and
the same time, and is answered the same. What takes long is done in threads, of which there are few: a flood of attempts
costs no more than those, and holds up nobody who was right lately, who has a key, or who comes from another host.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Callable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor

from cluster import RefusalLog
from core import Machine
from gateway.auth.fair_turns import Turns
from gateway.auth.scrypt import HASH_BYTES, SALT_BYTES, N, P, R, Scrypt
from gateway.auth.users_file import Account
from gateway.config import ConfigError
from gateway.limits import AUTH_FAILURE_S, KEY_BYTES_MIN, NONCE_BYTES, SCRYPTS_MAX
from gateway.rights import Rights

log = logging.getLogger("sockpqd.gateway")


class Access:
    """The users. `read` gives those of the file, and raises ConfigError; without it everybody may do everything."""

    def __init__(self, read: Callable[[], dict[str, Account]] | None = None) -> None:
        self.required = read is not None
        self.file_users: Mapping[str, Account] = {} if read is None else read()     # another object after each change
        self.complaints = RefusalLog(log)
        self.new_nonce: Callable[[], bytes] = lambda: secrets.token_bytes(NONCE_BYTES)
        self.failure_s = AUTH_FAILURE_S
        self.threads: Executor = ThreadPoolExecutor(SCRYPTS_MAX, "scrypt")
        self._turns = Turns(SCRYPTS_MAX)
        self._read = read
        # What unknown users are compared with: nobody knows the secrets of these.
        self._nobodys_hash = Scrypt(N, R, P, secrets.token_bytes(SALT_BYTES), secrets.token_bytes(HASH_BYTES))
        self._nobodys_key = secrets.token_bytes(KEY_BYTES_MIN)
        # What was right lately, so that a fleet that comes back after a failover is not held up for minutes.
        self._pepper = secrets.token_bytes(KEY_BYTES_MIN)
        self._proved: dict[str, tuple[Account, bytes]] = {}

    def attach(self, machine: Machine) -> None:
        """The machine that holds the users of the log; before anything is asked."""
        self.machine = machine

    def reload(self) -> None:
        """Read the users file again. When it is bad the users stay as they are, and the log says so."""
        if self._read is None:
            return
        try:
            self.file_users = self._read()
        except ConfigError as error:
            log.error("the users stay as they were, because the users file cannot be used; correct it and send "
                      "SIGHUP again: %s", error)
            return
        self._proved.clear()
        log.info("the users file was read again, there are %d users in it", len(self.file_users))

    def account(self, user: str) -> Account | None:
        """The user of this name; those of the file go first."""
        account = self.file_users.get(user)
        if account is None and user in self.machine.users:
            account = Account.of_log(self.machine.users[user])
        return account

    def listed(self) -> list[tuple[str, str, str]]:
        """All users in the order of their names: name, rights, where they come from."""
        users = {name: (user.rights, "LOG") for name, user in self.machine.users.items()}
        users |= {name: (account.rights.text, "FILE") for name, account in self.file_users.items()}
        return [(name, *users[name]) for name in sorted(users)]

    async def check(self, user: str, secret: str, peer: str = "?") -> Rights | None:
        """The rights of the user, if this is his secret; else None, but not at once. `peer`: who asks, HOST:PORT."""
        began = asyncio.get_running_loop().time()
        account = self.account(user)
        right = self._was_right(user, account, secret) or _is_key(account, secret)
        if not right:
            async with self._turns.turn(peer.rpartition(":")[0]):
                right = await asyncio.get_running_loop().run_in_executor(
                    self.threads, self._compare, user, account, secret,
                )
        if right and account is not None:
            return account.rights
        await self.refuse("wrong user or secret", user, peer, began)
        return None

    def answers(self, user: str, nonce: bytes, answer: bytes) -> bool:
        """Is this what the user answers to a challenge with this nonce?"""
        account = self.account(user)
        key = None if account is None else account.key
        expected = hmac.digest(self._nobodys_key if key is None else key, nonce, "sha256")
        return hmac.compare_digest(expected, answer)

    def complain(self, why: str, user: str | None, peer: str) -> None:
        """Note in the log that this user was refused; None: nobody has proved who it is."""
        self.complaints.refused(peer, f"{why}, {'no user' if user is None else f'user {user}'}")

    async def refuse(self, why: str, user: str, peer: str, began: float) -> None:
        """Note a refused AUTH that began then (time of the loop), and let the client wait for the answer.

        Names of unknown users do not get into the log: people type their secrets there.
        """
        if self.account(user) is None:
            self.complaints.refused(peer, f"{why}, unknown user")
        else:
            self.complain(why, user, peer)
        await asyncio.sleep(max(0.0, began + self.failure_s - asyncio.get_running_loop().time()))

    def _compare(self, user: str, account: Account | None, secret: str) -> bool:
        """In a thread. What cannot be right costs as much as all others."""
        if self._was_right(user, account, secret):      # while this waited for the thread
            return True
        known = self._nobodys_hash if account is None or account.scrypt is None else account.scrypt
        right = known.matches(secret)
        if account is None or account.scrypt is None or not right:
            return False
        self._proved[user] = account, self._peppered(secret)
        return True

    def _was_right(self, user: str, account: Account | None, secret: str) -> bool:
        proved = self._proved.get(user)
        if account is None or proved is None or proved[0] != account:
            return False
        return hmac.compare_digest(proved[1], self._peppered(secret))

    def _peppered(self, secret: str) -> bytes:
        return hmac.digest(self._pepper, secret.encode(), "sha256")


def _is_key(account: Account | None, secret: str) -> bool:
    """Is this the key of the user, who has one? It cannot be guessed, so it is not worth a hash."""
    return account is not None and account.key is not None and hmac.compare_digest(secret.encode(), account.key)
