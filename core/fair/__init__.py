"""Fair shares among groups by the time they have used: Presto's multilevel split queue (spec/fair 1).

`levels` groups, levels and what a charge does to them, `shelves` which jobs a group has in a queue, `book` all of it
kept in step with the jobs, `choice` which group is next. Uses the limits, operations and the collections of the store.
"""
