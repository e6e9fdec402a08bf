"""How many turns of a pulse a second, and what pulses cost."""
