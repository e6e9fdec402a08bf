"""The build of the running Python, on which processor time depends: for pqctl and the benchmarks."""

from __future__ import annotations

import sysconfig
from collections.abc import Mapping
from typing import Any

UNKNOWN = "not recorded whether optimized"


def how_built(config: Mapping[str, Any] | None = None) -> str:
    """Return "optimized", "optimized, LTO", "not optimized" or UNKNOWN. `config`: as sysconfig.get_config_vars().

    A build with profiles shows in its configuration arguments or flags, unless the packager removed them: Debian builds
    with profiles and LTO, and records neither. So their absence proves nothing.
    """
    known = sysconfig.get_config_vars() if config is None else config
    arguments, flags = str(known.get("CONFIG_ARGS")), str(known.get("PY_CORE_CFLAGS"))
    if known.get("Py_DEBUG") or "-O0" in flags.split():
        return "not optimized"
    if "--enable-optimizations" in arguments or "-fprofile-use" in flags or "-fprofile-instr-use" in flags:
        return "optimized, LTO" if "--with-lto" in arguments or "-flto" in flags else "optimized"
    return UNKNOWN
