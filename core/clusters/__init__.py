"""The map of clusters that a program uses as one: which of them owns a name (spec/state-machine 13).

May use core.limits and core.dead_letters.
"""
