"""Several clusters that are used as one: which of them a command goes to, and what comes of it when the map changes.

Above `_engine`, which serves one cluster. Without a map of clusters there is one engine and nothing to decide.
"""
