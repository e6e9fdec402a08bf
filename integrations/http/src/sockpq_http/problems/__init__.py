"""Problem details (RFC 9457): the form of every answer that is an error."""
