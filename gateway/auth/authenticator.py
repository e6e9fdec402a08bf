"""Authentication: the users from the file and from the log, and how they prove their identity.

A wrong secret, an unknown user, and a user without that kind of proof take the same steps and the same time, and get
the same answer. Hashing is done in a small pool of threads: a flood of attempts keeps only these busy, and does not
delay users who authenticated recently, users with keys, or clients from other hosts: an IPv6 /64 is one host.
"""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor

from sockpqd.cluster import RefusalLog
from sockpqd.connections import address_of
from sockpqd.core import Machine
from sockpqd.gateway.auth.fair_turns import FairTurns
from sockpqd.gateway.auth.scrypt import HASH_BYTES, SALT_BYTES, N, P, R, Scrypt
from sockpqd.gateway.auth.users_file import Account
from sockpqd.gateway.config import ConfigError
from sockpqd.gateway.limits import AUTH_FAILURE_S, KEY_BYTES_MIN, NONCE_BYTES, SCRYPTS_MAX
from sockpqd.gateway.rights import Rights

log = logging.getLogger("sockpqd.gateway")


class Access:
    """The users of a node. `read`: reads the users file, and may raise ConfigError; None if authentication is off."""

    def __init__(self, read: Callable[[], dict[str, Account]] | None = None) -> None:
        self.required = read is not None
        self.file_users: Mapping[str, Account] = {} if read is None else read()     # a new object after each change
        self.complaints = RefusalLog(log)
        self.new_nonce: Callable[[], bytes] = lambda: secrets.token_bytes(NONCE_BYTES)
        self.failure_s = AUTH_FAILURE_S
        self.threads: Executor = ThreadPoolExecutor(SCRYPTS_MAX, "scrypt")
        self._turns = FairTurns(SCRYPTS_MAX)
        self._read = read
        # Compared against for unknown users: random, so that no secret matches.
        self._nobodys_hash = Scrypt(N, R, P, secrets.token_bytes(SALT_BYTES), secrets.token_bytes(HASH_BYTES))
        self._nobodys_key = secrets.token_bytes(KEY_BYTES_MIN)
        # Recent successes, so that a fleet reconnecting after a failover is not held up for minutes.
        self._pepper = secrets.token_bytes(KEY_BYTES_MIN)
        self._proved: dict[str, tuple[Account, bytes]] = {}

    def attach(self, machine: Machine) -> None:
        """Set the machine that holds the users of the log. Must be called before anything else."""
        self.machine = machine

    def reload(self) -> None:
        """Reread the users file. If it is invalid, keep the current users and log why."""
        if self._read is None:
            return
        try:
            self.file_users = self._read()
        except ConfigError as error:
            log.error("the users are unchanged, because the users file is invalid; correct it and send SIGHUP "
                      "again: %s", error)
            return
        self._proved.clear()
        log.info("reloaded the users file; users: %d", len(self.file_users))

    def account(self, user: str) -> Account | None:
        """Return the account of this user, None if unknown; users in the file take precedence."""
        account = self.file_users.get(user)
        if account is None and user in self.machine.users:
            account = Account.of_log(self.machine.users[user])
        return account

    def names(self) -> list[str]:
        """The names of all users, sorted."""
        return sorted({*self.machine.users, *self.file_users})

    def listed(self, names: Iterable[str]) -> list[tuple[str, str, str]]:
        """List these users, if they still exist: name, rights, and source (FILE or LOG)."""
        users = []
        for name in names:
            if name in self.file_users:
                users.append((name, self.file_users[name].rights.text, "FILE"))
            elif name in self.machine.users:
                users.append((name, self.machine.users[name].rights, "LOG"))
        return users

    async def check(self, user: str, secret: str, peer: str = "?") -> Rights | None:
        """Return the user's rights, or None after a delay if the secret is wrong. `peer`: the client, HOST:PORT."""
        began = asyncio.get_running_loop().time()
        account = self.account(user)
        right = self._was_right(user, account, secret) or _is_key(account, secret)
        if not right:
            host = peer.rpartition(":")[0]
            async with self._turns.turn(address_of(host) or host):
                right = await asyncio.get_running_loop().run_in_executor(
                    self.threads, self._compare, user, account, secret,
                )
        now = self.account(user)                # hashing takes its time, and users may have changed meanwhile
        if right and account is not None and now is not None and now.proof == account.proof:
            return now.rights
        await self.refuse("wrong user or secret", user, peer, began)
        return None

    def answers(self, user: str, nonce: bytes, answer: bytes) -> bool:
        """Return whether this is the user's correct answer to a challenge with this nonce."""
        account = self.account(user)
        key = None if account is None else account.key
        expected = hmac.digest(self._nobodys_key if key is None else key, nonce, "sha256")
        return hmac.compare_digest(expected, answer)

    def complain(self, why: str, user: str | None, peer: str) -> None:
        """Log that this user was refused; None: the client has not authenticated."""
        self.complaints.refused(peer, f"{why}, {'no user' if user is None else f'user {user}'}")

    async def refuse(self, why: str, user: str, peer: str, began: float) -> None:
        """Log a failed AUTH that began at `began` (loop time), and delay its answer.

        Names of unknown users are not logged: people type their secrets there.
        """
        if self.account(user) is None:
            self.complaints.refused(peer, f"{why}, unknown user")
        else:
            self.complain(why, user, peer)
        await asyncio.sleep(max(0.0, began + self.failure_s - asyncio.get_running_loop().time()))

    def _compare(self, user: str, account: Account | None, secret: str) -> bool:
        """Compare the secret, in a thread. An attempt that cannot succeed costs as much as any other."""
        if self._was_right(user, account, secret):      # while this one was queued for a thread
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
    """Return whether this is the user's key. A key cannot be guessed, so it need not be hashed."""
    return account is not None and account.key is not None and hmac.compare_digest(secret.encode(), account.key)
