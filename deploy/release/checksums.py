"""Writes SHA256SUMS of the distributions in a folder, signed if there is a key: `make dist KEY=~/.ssh/id_ed25519`.

    python deploy/release/checksums.py FOLDER [KEY]

Users that have the public key in a file of allowed signers (ssh-keygen(1), ALLOWED SIGNERS) verify downloads by

    ssh-keygen -Y verify -f ALLOWED_SIGNERS -I SIGNER -n sockpqd-release -s SHA256SUMS.sig < SHA256SUMS
    sha256sum --check SHA256SUMS
"""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

NAMESPACE = "sockpqd-release"       # a signature for something else is none for this
PATTERNS = "*.whl", "*.tar.gz", "*.deb", "*.cdx.json", "*.oci.tar"


def write(folder: Path) -> Path:
    """Write the sums of all distributions in the folder; returns the file. Raises OSError; SystemExit without any."""
    files = sorted(path for pattern in PATTERNS for path in folder.glob(pattern))
    if not files:
        raise SystemExit(f"{folder}: there is no distribution")
    sums = folder / "SHA256SUMS"
    sums.write_text("".join(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n" for path in files))
    return sums


def sign(sums: Path, key: str) -> None:
    """Sign with a private key, or the public one of a key that ssh-agent has; raises SystemExit."""
    command = ["ssh-keygen", "-Y", "sign", "-n", NAMESPACE, "-f", str(Path(key).expanduser()), str(sums)]
    try:
        subprocess.run(command, check=True, stdin=None if sys.stdin.isatty() else subprocess.DEVNULL)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"{sums} is NOT signed: {error}") from error


def main(arguments: list[str]) -> None:
    """Write and sign the sums."""
    folder, key = Path(arguments[0]), arguments[1] if len(arguments) > 1 else ""
    sums = write(folder)
    signature = sums.with_name(f"{sums.name}.sig")
    signature.unlink(missing_ok=True)       # of other sums
    if key:
        sign(sums, key)
        print(f"{sums}, signed: {signature}")
    else:
        print(f"{sums} is NOT signed: `make dist KEY=FILE` signs it with an SSH key")


if __name__ == "__main__":
    main(sys.argv[1:])
