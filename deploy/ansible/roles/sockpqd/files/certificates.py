"""A private certificate authority in a folder, and a certificate of it for each node.

    certificates.py --folder FOLDER --days 825 < nodes.json         [{"name": "n1", "names": ["n1", "10.0.0.1"]}, ..]

Issues certificates that are missing, end within 30 days, or are not for these names or of this authority; leaves
the others alone. Prints {"made": ["ca", "n1"]}. Keys are written with mode 0600. Needs the package cryptography, which
is installed with Ansible.
"""

from __future__ import annotations

import argparse
import ipaddress
import json
import os
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

AUTHORITY_DAYS = 3650
RENEWED_BEFORE = timedelta(days=30)
CLOCKS_DIFFER = timedelta(hours=1)      # a certificate is good from now on also where it is a little earlier


class Authority:
    """The authority in ca.crt and ca.key of the folder, created if neither exists."""

    def __init__(self, folder: Path) -> None:
        certificate, key = folder / "ca.crt", folder / "ca.key"
        self.made = not certificate.exists() and not key.exists()
        if self.made:
            self.key = ec.generate_private_key(ec.SECP256R1())
            self.certificate = self._self_signed()
            write(key, key_bytes(self.key), 0o600)
            write(certificate, self.certificate.public_bytes(serialization.Encoding.PEM), 0o644)
        elif not certificate.exists() or not key.exists():
            sys.exit(f"{folder} has only one of ca.crt and ca.key: bring the other one, or bring a certificate and a "
                     "key for each node and set sockpqd_private_ca to false")
        else:
            self.certificate = x509.load_pem_x509_certificate(certificate.read_bytes())
            loaded = serialization.load_pem_private_key(key.read_bytes(), None)
            if loaded.public_key() != self.certificate.public_key():
                sys.exit(f"{key} is not the key of {certificate}")
            assert isinstance(loaded, ec.EllipticCurvePrivateKey)
            self.key = loaded

    def _self_signed(self) -> x509.Certificate:
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "sockpqd")])
        usage = x509.KeyUsage(
            digital_signature=False, content_commitment=False, key_encipherment=False, data_encipherment=False,
            key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
        )
        return (
            begun(name, name, self.key.public_key(), AUTHORITY_DAYS)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(usage, critical=True)
            .sign(self.key, hashes.SHA256())
        )

    def issue(self, name: str, names: list[str], days: int, folder: Path) -> None:
        """Write `name`.crt and `name`.key for a node."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        usages = [ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]     # a node dials, too
        issuer_key = x509.AuthorityKeyIdentifier.from_issuer_public_key(self.key.public_key())
        certificate = (
            begun(subject, self.certificate.subject, key.public_key(), days)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
            .add_extension(issuer_key, critical=False)
            .add_extension(x509.SubjectAlternativeName(list(map(general_name, names))), critical=False)
            .sign(self.key, hashes.SHA256())
        )
        write(folder / f"{name}.key", key_bytes(key), 0o600)
        write(folder / f"{name}.crt", certificate.public_bytes(serialization.Encoding.PEM), 0o644)

    def good(self, name: str, names: list[str], folder: Path) -> bool:
        """Return whether the folder has a certificate for these names that is valid for a while, and its key."""
        try:
            certificate = x509.load_pem_x509_certificate((folder / f"{name}.crt").read_bytes())
            key = serialization.load_pem_private_key((folder / f"{name}.key").read_bytes(), None)
            certificate.verify_directly_issued_by(self.certificate)
            told = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        except (OSError, ValueError, InvalidSignature, x509.ExtensionNotFound):
            return False
        return (
            key.public_key() == certificate.public_key()
            and list(told) == list(map(general_name, names))
            and certificate.not_valid_after_utc - RENEWED_BEFORE > datetime.now(UTC)
        )


def begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePublicKey, days: int
) -> x509.CertificateBuilder:
    """Begin a certificate with the fields that all certificates have."""
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject).issuer_name(issuer).public_key(key).serial_number(x509.random_serial_number())
        .not_valid_before(now - CLOCKS_DIFFER).not_valid_after(now + timedelta(days=days))
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
    )


def general_name(name: str) -> x509.GeneralName:
    """Parse an address or a DNS name."""
    try:
        return x509.IPAddress(ipaddress.ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def key_bytes(key: ec.EllipticCurvePrivateKey) -> bytes:
    """The key as PEM, not encrypted: the file's mode protects it."""
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )


def write(path: Path, data: bytes, mode: int) -> None:
    """Write the file atomically; others can never read it in between."""
    unfinished = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(unfinished, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as file:
        file.write(data)
    unfinished.rename(path)


def main() -> None:
    """Read the nodes from standard input, issue certificates, and print the result."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--days", type=int, required=True)
    arguments = parser.parse_args()
    folder: Path = arguments.folder
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    authority = Authority(folder)
    made = ["ca"] if authority.made else []
    for node in json.load(sys.stdin):
        names = list(dict.fromkeys(node["names"]))
        if not authority.good(node["name"], names, folder):
            authority.issue(node["name"], names, arguments.days, folder)
            made.append(node["name"])
    print(json.dumps({"made": made}))


if __name__ == "__main__":
    main()
