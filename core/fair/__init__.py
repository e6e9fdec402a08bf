"""Fair shares among groups by the time they have used: Presto's multilevel split queue (spec/fair 1).

`levels` has groups and levels and charges them, `queue_groups` has the jobs of each group in a queue, `offered` the
ordered groups of each level, `first_jobs` the groups that have a job to hand out; `deferred_offers` offers many groups
in portions, `scheduler` keeps all of these in step with the jobs, and `choice` finds the next group. Uses the limits,
the operations and the collections of the store.
"""
