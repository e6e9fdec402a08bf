"""`pqctl queue ..`, `topic ..`, `config` and `sched ..`: counts, settings and contents.

May import the same rooms as `actions`.
"""
