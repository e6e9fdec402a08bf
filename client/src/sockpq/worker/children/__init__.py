"""The children of a pool, of each kind: processes, threads, tasks of an event loop; and how they process a job."""
