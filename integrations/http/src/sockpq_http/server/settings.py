"""Settings of `sockpq-http serve`, each with its default and the reason for that."""

from __future__ import annotations

from dataclasses import dataclass, field

from sockpq_http.access.users import UserLimits
from sockpq_http.limits import IDEMPOTENCY_S

MIB = 1 << 20


@dataclass(frozen=True)
class ConnectionLimits:
    """Limits of the connections of HTTP clients, as docs/SECURITY.md has them for every door; times in seconds."""

    connections_max: int = 10_000
    per_address_max: int = 5_000        # half of them; this machine may have all
    handshake_timeout_s: float = 10.0   # for which a handshake of TLS may take, as nothing can be asked before
    head_bytes_max: int = 32_768        # of a request line with its headers
    head_timeout_s: float = 10.0        # for which a request line and its headers may take
    body_timeout_s: float = 300.0       # for which a body may take
    answer_timeout_s: float = 60.0      # in which an answer is read
    idle_timeout_s: int = 75            # between two requests: longer than balancers keep theirs


@dataclass(frozen=True)
class Settings:
    """The settings of one instance. `servers`: of the cluster, with commas between them.

    They are always named: a configuration of this machine might have a user, as whom strangers would act.
    """

    servers: str = "127.0.0.1:11361"
    ca: str | None = None
    reached_by_others: bool = False     # it listens on an address that other machines may reach
    hosts: tuple[str, ...] = ()
    cors_origins: tuple[str, ...] = ()
    idempotency_s: float = IDEMPOTENCY_S
    timeout_s: float = 30.0             # for which a call may take, failovers included
    body_bytes_max: int = 16 * MIB      # the largest job has 8 MiB, in base64 a third more
    memory_bytes_max: int = 256 * MIB   # of all bodies, and of large answers that are not read yet
    drain_s: float = 5.0                # between "not ready" and the end of listening, so that balancers notice
    end_s: float = 30.0                 # for which requests in progress may still take then
    users: UserLimits = field(default_factory=UserLimits)
    connections: ConnectionLimits = field(default_factory=ConnectionLimits)
