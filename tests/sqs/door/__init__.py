"""The front end before its engine: protocols, signatures, connections."""
