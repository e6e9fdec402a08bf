"""What users install: distributions, units, containers, manuals."""
