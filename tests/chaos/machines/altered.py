"""sockpqd with alterations: a command that executes the program given as its arguments.

    ALTERED="small_pages slow_disk" python -m tests.chaos.machines.altered sockpqd --config n1.toml

Each word names a module of this package, whose `alter` changes the program. Nothing needs root.
"""

from __future__ import annotations

import importlib
import os
import sys

VARIABLE = "ALTERED"
COMMAND = (sys.executable, "-m", "tests.chaos.machines.altered")

if __name__ == "__main__":
    from sockpqd.gateway.main import main

    for word in os.environ[VARIABLE].split():
        importlib.import_module(f"tests.chaos.machines.{word}").alter()
    del sys.argv[0]
    main()
