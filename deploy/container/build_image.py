"""Builds an OCI image of a node without any registry, from the Debian package: `make image`.

    python deploy/container/build_image.py DIST

Puts sockpqd_VERSION_ARCHITECTURE.oci.tar into the folder of the package: an archive of an OCI layout, which
`podman load -i`, `skopeo copy oci-archive:..` and Kubernetes' tools read. Its base is a small Debian of the suite that
builds it, with Python. Needs root, debootstrap, umoci, dpkg-deb and Debian's archive (SOCKPQD_MIRROR).
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

MIRROR = os.environ.get("SOCKPQD_MIRROR", "http://deb.debian.org/debian")
NEEDED = "debootstrap", "umoci", "dpkg-deb", "chroot"
# By number, so that Kubernetes can check that it is not root (runAsNonRoot) and volumes can be given to it.
USER = 10001
TAG = "latest"
PORTS = 11361, 11362, 11363
UNNEEDED = (
    "usr/share/doc", "usr/share/man", "usr/share/locale", "usr/share/info", "var/cache/apt", "var/lib/apt/lists",
    "var/log", "usr/lib/systemd", "usr/lib/sysusers.d",
)
SETTINGS = (
    "--config.entrypoint", "/usr/bin/sockpqd", "--config.user", f"{USER}:{USER}", "--config.volume", "/var/lib/sockpqd",
    "--config.workingdir", "/var/lib/sockpqd", "--config.stopsignal", "SIGTERM",
    "--config.env", "PATH=/usr/bin:/bin", "--config.label", "org.opencontainers.image.title=sockpqd",
    "--config.label", "org.opencontainers.image.licenses=Apache-2.0",
    *(word for port in PORTS for word in ("--config.exposedports", f"{port}/tcp")),
)


def main(arguments: list[str]) -> None:
    """Build the image of the only package in the folder, and print its file."""
    (folder,) = arguments
    packages = sorted(Path(folder).glob("sockpqd_*.deb"))
    if len(packages) != 1:
        sys.exit(f"{folder}: {len(packages)} packages where there should be one: `make deb` builds it")
    if missing := [program for program in NEEDED if shutil.which(program) is None]:
        sys.exit(f"missing: {', '.join(missing)}")
    if os.geteuid():
        sys.exit("the files of an image have owners: this needs root")
    version = packages[0].name.split("_")[1].rpartition("-")[0]
    target = packages[0].with_suffix(".oci.tar")
    with tempfile.TemporaryDirectory(prefix="sockpqd-image-") as temporary:
        layout, bundle = Path(temporary, "layout"), Path(temporary, "bundle")
        image = f"{layout}:{TAG}"
        _run("umoci", "init", "--layout", layout)
        _run("umoci", "new", "--image", image)
        _run("umoci", "unpack", "--image", image, bundle)
        fill(bundle / "rootfs", packages[0])
        _run("umoci", "repack", "--image", image, bundle)
        _run("umoci", "config", "--image", image, *SETTINGS, "--config.label",
             f"org.opencontainers.image.version={version}")
        _run("umoci", "gc", "--layout", layout)
        with tarfile.open(target, "w") as archive:
            for name in ("oci-layout", "index.json", "blobs"):
                archive.add(layout / name, name)
    print(target)


def fill(root: Path, package: Path) -> None:
    """Put a small Debian with Python and the content of the package below `root`."""
    suite = re.search(r"^VERSION_CODENAME=(\w+)$", Path("/etc/os-release").read_text(), re.MULTILINE)
    if suite is None:
        sys.exit("/etc/os-release names no suite of Debian")
    _run("debootstrap", "--variant=minbase", "--include=python3", suite[1], root, MIRROR)
    _run("dpkg-deb", "--extract", package, root)
    with (root / "etc/passwd").open("a") as users, (root / "etc/group").open("a") as groups:
        users.write(f"sockpqd:x:{USER}:{USER}:sockpqd:/var/lib/sockpqd:/usr/sbin/nologin\n")
        groups.write(f"sockpqd:x:{USER}:\n")
    data = root / "var/lib/sockpqd"
    data.mkdir(mode=0o700)
    os.chown(data, USER, USER)
    (root / "etc/sockpqd.toml").chmod(0o644)
    _run("chroot", root, "/opt/sockpqd/bin/python", "-m", "compileall", "-q", "/opt/sockpqd/lib")
    for name in UNNEEDED:
        shutil.rmtree(root / name, ignore_errors=True)
    (root / "var/log").mkdir()


def _run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {(done.stderr or done.stdout).strip()[-2000:]}")


if __name__ == "__main__":
    main(sys.argv[1:])
