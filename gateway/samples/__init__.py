"""Samples: the figures of the cluster, of this node and of its queues over the last seven days.

`ring` keeps rows of figures at equal steps of time, `course` one subject in rings of coarser and coarser steps,
`flows`, `latencies` (with `quantiles`) and `oldest` compute the figures of queues, `cluster_figures` has the cluster's
and the node's, `kept_queues` chooses the queues that have a course, `kept_pulses` has the courses of pulses,
`sample_file` preserves them over a restart, and `sampler` takes a sample each second. May use all rooms before it.
"""

from sockpqd.gateway.samples.cluster_figures import CLUSTER_FIELDS, NODE_FIELDS
from sockpqd.gateway.samples.course import QUEUE_FIELDS, FigureRows, FigureSeries
from sockpqd.gateway.samples.flows import STILL, QueueRates
from sockpqd.gateway.samples.sampler import FigureSampler

__all__ = ["CLUSTER_FIELDS", "NODE_FIELDS", "QUEUE_FIELDS", "STILL", "FigureRows", "FigureSampler", "FigureSeries",
           "QueueRates"]
