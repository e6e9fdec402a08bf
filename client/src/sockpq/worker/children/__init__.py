"""The children of a pool, of each kind: processes, threads, tasks of an event loop; and what they do with a job."""
