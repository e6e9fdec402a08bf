"""`pqctl map ..`: the map of the clusters that programs use as one.

`changes` computes maps, `clusters` reads and writes them, `remains` finds the remaining jobs of names that move.
"""
