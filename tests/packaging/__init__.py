"""The things that users install: distributions, units, containers, manuals."""
