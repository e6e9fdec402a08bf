"""The certificate of a listener, read again when its files change."""

from __future__ import annotations

import logging
import os
import ssl

log = logging.getLogger("sockpq-sqs")

OTHERS_MAY = 0o077              # the mode bits of a file for anyone but its owner


class CertificateError(Exception):
    """The files are not a certificate with its key, or others may read the key."""


class Certificate:
    """The last valid certificate; `context` stays the same object, and gives each handshake the newest one."""

    def __init__(self, certificate: str, key: str) -> None:
        """Read the files; raises CertificateError."""
        self._files = certificate, key
        self._seen = self._state()
        self._newest = self.context = _context(certificate, key)
        self.context.sni_callback = self._use_newest        # called for each handshake, even without a name

    def refresh(self) -> None:
        """Read the files again if they have changed; while they are invalid the last certificate stays in use."""
        seen = self._state()
        if seen == self._seen:
            return
        self._seen = seen
        try:
            self._newest = _context(*self._files)
        except CertificateError as error:
            log.error("the last certificate stays in use: %s", error)
        else:
            log.info("the certificate was read again; new connections use it")

    def _state(self) -> list[tuple[int, int, int] | None]:
        found: list[tuple[int, int, int] | None] = []
        for file in self._files:
            try:
                status = os.stat(file)
                found.append((status.st_mtime_ns, status.st_ino, status.st_mode))
            except OSError:
                found.append(None)
        return found

    def _use_newest(self, connection: ssl.SSLObject, _: str | None, __: ssl.SSLContext) -> None:
        connection.context = self._newest


def _context(certificate: str, key: str) -> ssl.SSLContext:
    try:
        mode = os.stat(key).st_mode
    except OSError as error:
        raise CertificateError(f"{key}: {error.strerror}") from None
    if mode & OTHERS_MAY:
        raise CertificateError(
            f"{key} may be read or changed by others (mode {mode & 0o777:04o}); make it 0600 or 0400")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION
    try:
        context.load_cert_chain(certificate, key, password=lambda: _refuse_encrypted(key))
    except OSError as error:                    # ssl.SSLError is one
        why = error.reason if isinstance(error, ssl.SSLError) else error.strerror
        raise CertificateError(f"{certificate} and {key} are no certificate with its key in PEM: {why}") from None
    return context


def _refuse_encrypted(key: str) -> str:
    raise CertificateError(f"{key} is protected by a passphrase, which cannot be entered at the start")
