"""Records what the entries of a recorded log are charged: data/scenario/charges_NAME.json, for test_charges.py.

    python -m tests.upgrade.charges NAME
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path

from tests.upgrade.directories import unpack
from tests.upgrade.scenario import SCENARIO, read


def charges_of(name: str) -> list[int]:
    """Execute the log of data/scenario/NAME; return State.spent after each entry."""
    with tempfile.TemporaryDirectory() as folder:
        data_dir = Path(folder, "n1")
        unpack(SCENARIO / f"{name}.tar.xz", data_dir)
        return read(data_dir).spent


def recorded(name: str) -> Path:
    """Return the file with the charges of a log."""
    return SCENARIO / f"charges_{name}.json"


if __name__ == "__main__":
    recorded(sys.argv[1]).write_text(f"{json.dumps(charges_of(sys.argv[1]))}\n", "utf-8")
