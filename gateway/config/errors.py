"""The error for a configuration that cannot be used."""


class ConfigError(Exception):
    """The configuration cannot be used; the message names the key and says why."""
