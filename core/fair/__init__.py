"""Fair shares among groups by the time they have used: Presto's multilevel split queue (spec/fair 1).

`levels` has groups, levels and what a charge does to them, `queue_groups` the jobs of each group in a queue, `offered`
the groups of each level in their order, `first_jobs` which of them can give a job, `deferred_offers` what is offered in
portions, `scheduler` keeps all of these in step with the jobs, and `choice` finds the group that is next. Uses the
limits, the operations and the collections of the store.
"""
