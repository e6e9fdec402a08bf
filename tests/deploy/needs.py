"""The requirements for running the containers on this machine."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

SWITCH = "SOCKPQD_TEST_DEPLOY"
PROGRAMS = ("systemd-nspawn", "debootstrap", "ip", "ssh", "ssh-keygen", "mount")
ANSIBLE = Path(sys.executable).parent / "ansible-playbook"


def missing() -> str | None:
    """Why the tests cannot run, in a few words; None when they can."""
    if os.environ.get(SWITCH) != "1":
        return f"{SWITCH}=1, which `make test-deploy` sets"
    if not sys.platform.startswith("linux") or os.geteuid() != 0:
        return "root on Linux"
    programs = [program for program in PROGRAMS if shutil.which(program) is None]
    if not ANSIBLE.exists():
        programs.append("ansible-playbook beside python")
    return ", ".join(programs) or None
