"""The operations on jobs: put, hand out, end a hand-out, change, and several of these at once.

May import the costs and the dispatch table of the room around it.
"""
