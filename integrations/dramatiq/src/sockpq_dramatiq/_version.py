"""The version of this distribution; it has its own, apart from the server's."""

__version__ = "0.1.0"
