"""Several clusters that are used as one: routes each command to one of them, and again when the map changes.

Above `_engine`, which serves one cluster. Without a map of clusters there is one engine and nothing to decide.
"""
