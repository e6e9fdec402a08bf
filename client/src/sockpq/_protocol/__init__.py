"""The protocol without IO: commands as bytes, answers as values."""
