"""The origin of a replica as the configuration describes it: its servers, and the user that reads its feed."""

from __future__ import annotations

import ssl
from pathlib import Path

from msgspec import Struct

from sockpqd.gateway.config import ConfigError, ReplicaSection, split_address
from sockpqd.gateway.process.certificates import check_mode


class OriginSettings(Struct, frozen=True):
    """The origin as [replica] describes it."""

    servers: tuple[tuple[str, int], ...]
    user: str | None
    secret_file: Path | None
    context: ssl.SSLContext | None      # None: without TLS, to servers of this machine
    problem: str = ""                   # why they cannot be used, until the node is started again

    def secret(self) -> str:
        """Read the secret of the user. Raises OSError, and ValueError if the file holds no word."""
        assert self.secret_file is not None
        secret = self.secret_file.read_text("utf-8").strip()
        if not secret or len(secret.split()) != 1:
            raise ValueError(f"{self.secret_file} holds no secret: it must be one word")
        return secret


def origin_settings(section: ReplicaSection) -> OriginSettings | None:
    """Return the origin that is configured, None if this cluster is not a replica. Raises ConfigError."""
    if not section.of:
        return None
    servers = tuple(split_address(address.strip()) for address in section.of.split(","))
    secret_file = None if section.secret_file is None else Path(section.secret_file)
    if secret_file is not None:
        check_mode("replica.secret_file", str(secret_file))
    return OriginSettings(servers, section.user, secret_file, _context(section.ca))


def settings_at_start(section: ReplicaSection) -> OriginSettings | None:
    """Like origin_settings(), but files that cannot be used are a problem of the settings.

    A cluster that was promoted needs these files no longer, and a node does not know that before it has its log.
    """
    try:
        return origin_settings(section)
    except ConfigError as error:
        return OriginSettings((), None, None, None, f"{error}; correct it, and start this node again")


def _context(ca: str | None) -> ssl.SSLContext | None:
    if ca is None:
        return None
    try:
        return ssl.create_default_context(cafile=ca)
    except OSError as error:
        reason = "no certificate in PEM" if isinstance(error, ssl.SSLError) else error.strerror
        raise ConfigError(f"replica.ca: {ca}: {reason}") from None

