"""The version of this distribution, the same as of sockpq and sockpqd."""

__version__ = "1.0.0"
