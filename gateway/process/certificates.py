"""The certificates of [tls]: loaded, verified by a handshake in memory, and reloaded on SIGHUP.

A handshake between two contexts of this node finds the errors that peers would otherwise report later: a key that does
not match the certificate, a wrong CA, invalid dates, or missing key usages.
"""

from __future__ import annotations

import contextlib
import logging
import ssl
import time
from pathlib import Path
from typing import Any

from msgspec import Struct

from sockpqd.cluster import PeerTls
from sockpqd.gateway.config import ConfigError, Tls

log = logging.getLogger("sockpqd.certificates")

DAY_S = 86_400
WARNING_DAYS = 30
OTHERS_MAY = 0o077              # the mode bits of a file for anyone but its owner
EXPIRED, NOT_YET, PURPOSE = 10, 9, 26   # X509_V_ERR_..


class _Read(Struct):
    """The result of loading all files. `expiries`: the configuration key of each file -> its expiry in Unix time.
    `names`: the hosts and addresses for which the certificate that clients see is valid.
    """

    clients: ssl.SSLContext
    peers: PeerTls
    expiries: dict[str, float]
    names: tuple[str, ...]


class Certificates:
    """The last valid certificates. `clients`, for ports that clients and browsers dial, stays the same object."""

    def __init__(self, tls: Tls, name: str) -> None:
        """Load the certificates. `name`: the name of this node. Raises ConfigError."""
        self._tls = tls
        self._name = name
        self._now = _read(tls, name)
        self.peers = self._now.peers
        self.clients = self._now.clients
        self.clients.sni_callback = self._newest    # called for each handshake, even without SNI

    def reload(self) -> None:
        """Reload the files. If any is invalid, keep the previous certificates and log why."""
        try:
            now = _read(self._tls, self._name)
        except ConfigError as error:
            log.error("the previous certificates stay in use: %s. Correct that and send SIGHUP again", error)
            return
        self._now = now
        self.peers.listening, self.peers.dialing = now.peers.listening, now.peers.dialing
        log.info("certificates reloaded; new connections use them")
        self.warn()

    @property
    def expiries(self) -> dict[str, float]:
        """The configuration key of each certificate file, and its expiry in seconds of Unix time."""
        return self._now.expiries

    @property
    def names(self) -> tuple[str, ...]:
        """The hosts and addresses for which the certificate that clients see is valid."""
        return self._now.names

    def warn(self) -> None:
        """Log a warning for each certificate that expires soon."""
        for key, expiry in self.expiries.items():
            days = (expiry - time.time()) / DAY_S
            if days <= 0:
                log.error(
                    "tls.%s: %s has expired: clients and other nodes refuse new connections to this node. Put a new one"
                    " in its place and send SIGHUP to this process", key, getattr(self._tls, key),
                )
            elif days < WARNING_DAYS:
                log.warning(
                    "tls.%s: %s expires in %.1f days: put a new one in its place and send SIGHUP to this process",
                    key, getattr(self._tls, key), days,
                )

    def next_warning_s(self) -> float:
        """Return the seconds until warn() has something new to say: a day, or less if a certificate expires before."""
        left = (expiry - time.time() + 1.0 for expiry in self.expiries.values())    # a second later it has expired
        return min((DAY_S, *(seconds for seconds in left if seconds > 0)))

    def _newest(self, connection: ssl.SSLObject, _: str, __: ssl.SSLContext) -> None:
        connection.context = self._now.clients


def _read(tls: Tls, name: str) -> _Read:
    """Load and verify all files; raises ConfigError."""
    check_mode("tls.key", tls.key)
    authorities = _authorities(tls.ca)
    listening = _context(ssl.PROTOCOL_TLS_SERVER, "cert", tls.cert, "key", tls.key, tls.ca)
    dialing = _context(ssl.PROTOCOL_TLS_CLIENT, "cert", tls.cert, "key", tls.key, tls.ca)
    certificate = _greet(listening, dialing, "cert", tls.cert)
    names = [value for kind, value in certificate.get("subjectAltName", ()) if kind == "DNS"]
    if name.lower() not in (proven.lower() for proven in names):
        raise ConfigError(f"tls.cert: {tls.cert} is for {' '.join(names) or 'no DNS name'}, not for this node, {name}")
    expiries = {"cert": _expiry(certificate), "ca": _expiry_of_issuer(certificate, authorities)}
    shown, cert, key = certificate, tls.client_cert, tls.client_key
    if cert is None or key is None:
        clients = _context(ssl.PROTOCOL_TLS_SERVER, "cert", tls.cert, "key", tls.key)
    else:
        check_mode("tls.client_key", key)
        clients = _context(ssl.PROTOCOL_TLS_SERVER, "client_cert", cert, "client_key", key)
        shown = _greet(clients, _trusting(cert), "client_cert", cert)
        expiries["client_cert"] = _expiry(shown)
    hosts = tuple(value for kind, value in shown.get("subjectAltName", ()) if kind in ("DNS", "IP Address"))
    return _Read(clients, PeerTls(listening, dialing), expiries, hosts)


def _context(
    protocol: int, cert_key: str, cert: str, key_key: str, key: str, ca: str | None = None
) -> ssl.SSLContext:
    """Create a context; with `ca` for connections between nodes: TLS 1.3, with certificates on both sides."""
    context = ssl.SSLContext(protocol)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
    if ca is None:
        context.minimum_version = ssl.TLSVersion.TLSv1_2
    else:
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False          # peer_network.py compares the name of the node, exactly
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(ca)
    if protocol == ssl.PROTOCOL_TLS_SERVER:
        context.num_tickets = 0                 # no session resumption: certificates are always checked
    _certificates_in(cert_key, cert)
    try:
        context.load_cert_chain(cert, key, password=lambda: _refuse_encrypted(key_key, key))
    except OSError as error:                    # ssl.SSLError is one
        if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
            raise ConfigError(f"tls.{key_key}: {key} does not belong to {cert}") from None
        raise ConfigError(f"tls.{key_key}: {key}: {_words(error, 'no private key in PEM')}") from None
    return context


def _refuse_encrypted(key_key: str, key: str) -> str:
    raise ConfigError(f"tls.{key_key}: {key} is protected by a passphrase, which cannot be entered at start")


def check_mode(key: str, path: str) -> None:
    """Raise ConfigError if the file named by this key of the configuration is missing, or not private to its owner."""
    with _as_config_error(key, path):
        mode = Path(path).stat().st_mode
    if mode & OTHERS_MAY:
        raise ConfigError(f"{key}: {path} may be read or changed by others (mode {mode & 0o777:04o}); "
                          "make it 0600 or 0400")


def _certificates_in(key: str, path: str) -> ssl.SSLContext:
    """Return a context that trusts the certificates in a file; raises ConfigError if there are none."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    with _as_config_error(f"tls.{key}", path):
        context.load_verify_locations(path)
    return context


@contextlib.contextmanager
def _as_config_error(key: str, path: str) -> Any:
    """Convert an OSError while a file is read into a ConfigError."""
    try:
        yield
    except OSError as error:
        raise ConfigError(f"{key}: {path}: {_words(error, 'no certificate in PEM')}") from None


def _words(error: OSError, otherwise: str) -> str:
    return otherwise if isinstance(error, ssl.SSLError) else error.strerror or str(error)


def _authorities(path: str) -> list[dict[str, Any]]:
    """Return the certificates in `ca`, in the ssl module's form; raises ConfigError if none is currently valid."""
    found: list[dict[str, Any]] = list(_certificates_in("ca", path).get_ca_certs())
    if not found:
        raise ConfigError(f"tls.ca: {path}: it contains no CA certificate")
    if all(_expiry(authority) < time.time() for authority in found):
        raise ConfigError(f"tls.ca: {path} has expired")
    return found


def _trusting(path: str) -> ssl.SSLContext:
    """Return a client context that trusts the certificate in this file, regardless of its issuer."""
    context = _certificates_in("client_cert", path)
    context.check_hostname = False
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    return context


def _greet(server: ssl.SSLContext, client: ssl.SSLContext, key: str, path: str) -> dict[str, Any]:
    """Perform a handshake in memory; returns the server's certificate as the client sees it. Raises ConfigError."""
    upstream, downstream = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [client.wrap_bio(downstream, upstream), server.wrap_bio(upstream, downstream, server_side=True)]
    try:
        for end in ends * 2:
            with contextlib.suppress(ssl.SSLWantReadError):
                end.do_handshake()
    except ssl.SSLCertVerificationError as error:
        reasons = {
            EXPIRED: "has expired", NOT_YET: "is not valid yet (compare the clock)",
            PURPOSE: "must be for servers and for clients: a node is both (extended key usage)",
        }
        said = reasons.get(error.verify_code, f"is not accepted by peers that trust tls.ca: {error.verify_message}")
        raise ConfigError(f"tls.{key}: {path} {said}") from None
    except ssl.SSLError as error:
        raise ConfigError(f"tls.{key}: {path} does not work: {error.reason}") from None
    return dict(ends[0].getpeercert() or {})


def _expiry(certificate: dict[str, Any]) -> float:
    return ssl.cert_time_to_seconds(certificate["notAfter"])


def _expiry_of_issuer(certificate: dict[str, Any], authorities: list[dict[str, Any]]) -> float:
    """Return the latest expiry among the authorities in the file that could have signed the certificate."""
    issuers = [one for one in authorities if one["subject"] == certificate["issuer"]]
    return max(_expiry(authority) for authority in issuers or authorities)
