"""The version of both distributions, sockpq and sockpqd; their pyproject.toml files read it from here."""

__version__ = "1.0.0"
