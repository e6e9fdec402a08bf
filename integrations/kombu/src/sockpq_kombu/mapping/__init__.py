"""Translates between kombu and the server: names, messages, queue arguments, URLs and errors. No IO."""
