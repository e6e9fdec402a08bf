"""The version of this distribution: that of sockpq and sockpqd."""

__version__ = "1.0.0rc1"
