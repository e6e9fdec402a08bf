"""Handlers of the operations on jobs: put, hand out, end a hand-out, change, and batches of these.

May import the costs and the dispatch table of the enclosing package.
"""
