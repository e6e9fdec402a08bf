"""A certificate authority for the clusters of tests and measurements.

It needs the package cryptography, so only code for developers imports it.
"""

from __future__ import annotations

import datetime
import ipaddress
from collections.abc import Sequence
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

SERVER, CLIENT = ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH
SIGNS = x509.KeyUsage(
    digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
    key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
)


class Authority:
    """Signs certificates; its own is in `folder`."""

    def __init__(self, folder: Path, name: str = "ca", days: float = 100) -> None:
        self.folder = folder
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name(f"{name} of a test")
        self.ca = folder / f"{name}.crt"
        builder = _builder(self._name, self._name, self._key, -10, days)
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        # Python 3.13 and later refuse an authority without these two, and certificates without the third.
        builder = builder.add_extension(SIGNS, critical=True)
        builder = builder.add_extension(x509.SubjectKeyIdentifier.from_public_key(self._key.public_key()), False)
        self.ca.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))

    def issue(
        self, file: str, names: Sequence[str], *, days: tuple[float, float] = (-1, 90),
        uses: Sequence[x509.ObjectIdentifier] = (SERVER, CLIENT),
    ) -> tuple[Path, Path]:
        """Write `file`.crt and `file`.key, valid for `days` (begin and end, from now); returns both paths."""
        key = ec.generate_private_key(ec.SECP256R1())
        builder = _builder(_name(file), self._name, key, *days)
        builder = builder.add_extension(x509.SubjectAlternativeName([_alternative(name) for name in names]), False)
        builder = builder.add_extension(x509.ExtendedKeyUsage(uses), False)
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key())
        builder = builder.add_extension(issuer_key, False)
        cert, private = self.folder / f"{file}.crt", self.folder / f"{file}.key"
        cert.write_bytes(builder.sign(self._key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM))
        private.touch(0o600)
        private.write_bytes(key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption(),
        ))
        return cert, private

    def node(self, name: str) -> dict[str, str]:
        """The [tls] section of the configuration of a node on loopback."""
        cert, key = self.issue(name, [name, "localhost", "127.0.0.1", "::1"])
        return {"cert": str(cert), "key": str(key), "ca": str(self.ca)}


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, begin: float, end: float
) -> x509.CertificateBuilder:
    now, day = datetime.datetime.now(datetime.UTC), datetime.timedelta(days=1)
    return (
        x509.CertificateBuilder().subject_name(subject).issuer_name(issuer).public_key(key.public_key())
        .serial_number(x509.random_serial_number()).not_valid_before(now + begin * day).not_valid_after(now + end * day)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)
