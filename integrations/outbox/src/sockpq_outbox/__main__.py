"""`python -m sockpq_outbox` is the program `pqoutbox`."""

from __future__ import annotations

from sockpq_outbox.program.main import main

main(prog_name="pqoutbox")
