"""Named loads on a cluster, and what each of them measures: `python -m bench.load NAME`."""
