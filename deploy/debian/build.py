"""Builds the Debian package of the server from the wheels in a folder: `make deb`.

    python deploy/debian/build.py DIST [--version 1.0.0-1]

An environment of its own below /opt/sockpqd, for the python3 of the Debian that builds it; units, users, manual pages,
completions, and a bill of materials (CycloneDX), also copied next to the package. Dependencies are those of
deploy/release/requirements.lock, checked by their hashes. Needs dpkg-deb, Debian's python3 and its venv, and the
package index. The same sources give the same bytes: times are those of SOURCE_DATE_EPOCH.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
LOCK = ROOT / "deploy/release/requirements.lock"
PYTHON = "/usr/bin/python3"
PREFIX = "opt/sockpqd"
PROGRAMS = "sockpqd", "pqctl", "sockpq-beanstalkd", "pqworker"
SCRIPTS = "preinst", "postinst", "prerm", "postrm"
BILL = "usr/share/doc/sockpqd/sockpqd.cdx.json"
DISTRIBUTIONS = "sockpq", "sockpqd"
# What pip notes of an installation: dpkg knows it better, and it differs from folder to folder.
NOTES = "RECORD", "INSTALLER", "REQUESTED", "direct_url.json"
WHERE_DEBIAN_LOOKS = {                  # for what a wheel has below share
    "man/man1": "man/man1", "bash-completion/completions": "bash-completion/completions",
    "zsh/site-functions": "zsh/vendor-completions", "fish/vendor_completions.d": "fish/vendor_completions.d",
}


def main() -> None:
    """Build the package into the folder of the wheels, and print its name."""
    parser = argparse.ArgumentParser(description="Build the Debian package from wheels.")
    parser.add_argument("dist", type=Path, help="the folder with the wheels; the package is put there")
    parser.add_argument("--version", help="of the package; default: the version of the wheel, revision 1")
    arguments = parser.parse_args()
    for program in ("dpkg-deb", PYTHON):
        if shutil.which(program) is None:
            sys.exit(f"{program} is missing: this needs Debian, or a container of it")
    wheels = [_wheel(arguments.dist, name) for name in DISTRIBUTIONS]
    version = arguments.version or f"{debian_version(wheels[-1].name.split('-')[1])}-1"
    os.umask(0o022)
    with tempfile.TemporaryDirectory(prefix="sockpqd-deb-") as folder:
        root = Path(folder, "root")
        fill(root, wheels)
        control(root, version)
        done = _run("dpkg-deb", "--root-owner-group", "-Zxz", "--build", root, arguments.dist)
        shutil.copy(root / BILL, arguments.dist)
    print(done.strip())


def debian_version(version: str) -> str:
    """Return a version of Python's as Debian writes it, in which a candidate comes before its release.

    `1.0.0rc1` is `1.0.0~rc1`, `1.1.0.dev0+g1` is `1.1.0~dev0+g1`.
    """
    public, plus, local = version.partition("+")
    return re.sub(r"\.?(a|b|rc|dev)(\d+)", r"~\1\2", public) + plus + local


def fill(root: Path, wheels: list[Path]) -> None:
    """Put all files of the package below `root`."""
    prefix = root / PREFIX
    _run(PYTHON, "-m", "venv", "--without-pip", prefix)
    pip = (sys.executable, "-m", "pip", "--python", prefix / "bin/python", "--disable-pip-version-check", "install",
           "--quiet", "--no-compile", "--no-deps")
    # pysyncobj has no wheel.
    _run(*pip, "--require-hashes", "--only-binary", ":all:", "--no-binary", "pysyncobj", "--requirement", LOCK)
    _run(*pip, "--no-index", *wheels)
    _relocate(prefix, root)
    bill = root / BILL
    bill.parent.mkdir(parents=True)
    _run(sys.executable, "-m", "cyclonedx_py", "environment", "--output-reproducible", "--output-file", bill,
         prefix / "bin/python")
    bill.chmod(0o644)
    share = prefix / "share"
    for theirs, debians in WHERE_DEBIAN_LOOKS.items():
        for file in sorted((share / theirs).iterdir()):
            _put(root / "usr/share" / debians / file.name, file.read_bytes())
    own = share / "sockpqd"
    _put(root / "usr/lib/systemd/system/sockpqd.service", (own / "sockpqd.service").read_bytes())
    _put(root / "usr/lib/sysusers.d/sockpqd.conf", (own / "sysusers.conf").read_bytes())
    _put(root / "etc/sockpqd.toml", (own / "sockpqd.toml").read_bytes())
    shutil.rmtree(share)
    shutil.rmtree(prefix / "include")
    for manual in sorted((root / "usr/share/man/man1").iterdir()):
        _compress(manual)
    documents = root / "usr/share/doc/sockpqd"
    _put(documents / "copyright", (HERE / "copyright").read_bytes())
    _put(documents / "CHANGELOG.md", (ROOT / "CHANGELOG.md").read_bytes())
    _compress(documents / "CHANGELOG.md")
    _put(documents / "examples/pqworker@.service", (ROOT / "deploy/systemd/pqworker@.service").read_bytes())
    (root / "usr/bin").mkdir()
    for program in PROGRAMS:
        (root / "usr/bin" / program).symlink_to(f"/{PREFIX}/bin/{program}")


def _relocate(prefix: Path, root: Path) -> None:
    """Adapt an environment that was filled below `root` to the place where the package puts it."""
    for program in (prefix / "bin").iterdir():
        if program.is_symlink():        # to Python
            continue
        if program.name in PROGRAMS:
            program.write_text(program.read_text().replace(f"{root}/", "/"))
        else:
            program.unlink()            # of dependencies, or to be sourced by a shell
    (prefix / "pyvenv.cfg").write_text(
        "home = /usr/bin\ninclude-system-site-packages = false\n"
    )
    for note in prefix.glob("lib/python*/site-packages/*.dist-info/*"):
        if note.name in NOTES:
            note.unlink()
    for cache in list(prefix.rglob("__pycache__")):
        shutil.rmtree(cache)


def control(root: Path, version: str) -> None:
    """Write DEBIAN/: what dpkg knows of the package, and its scripts."""
    folder = root / "DEBIAN"
    folder.mkdir()
    python = _run(PYTHON, "-c", "import sys; print(*sys.version_info[:2])").split()
    size = sum(file.lstat().st_size for file in root.rglob("*") if not file.is_dir()) // 1024
    words = {
        "VERSION": version, "ARCHITECTURE": _run("dpkg", "--print-architecture").strip(), "SIZE": str(size),
        "PYTHON": f"python3 (>= {'.'.join(python)}), python3 (<< {python[0]}.{int(python[1]) + 1})",
    }
    text = (HERE / "control").read_text()
    for name, value in words.items():
        text = text.replace(f"@{name}@", value)
    _put(folder / "control", text.encode())
    _put(folder / "conffiles", b"/etc/sockpqd.toml\n")
    for script in SCRIPTS:
        _put(folder / script, (HERE / script).read_bytes(), 0o755)
    sums = []
    for file in sorted(root.rglob("*")):
        if file.is_file() and not file.is_symlink() and folder not in file.parents:
            name = str(file.relative_to(root))
            if name != "etc/sockpqd.toml":
                sums.append(f"{hashlib.md5(file.read_bytes(), usedforsecurity=False).hexdigest()}  {name}\n")
    _put(folder / "md5sums", "".join(sums).encode())


def _wheel(dist: Path, name: str) -> Path:
    found = sorted(dist.glob(f"{name}-*.whl"))
    if len(found) != 1:
        sys.exit(f"{dist}: {len(found)} wheels of {name} where there should be one: `make dist` makes it")
    return found[0].resolve()


def _put(path: Path, data: bytes, mode: int = 0o644) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)
    path.chmod(mode)


def _compress(path: Path) -> None:
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
    path.unlink()


def _run(*command: str | Path) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"{command[0]}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


if __name__ == "__main__":
    main()
