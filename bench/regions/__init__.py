"""A cluster and its copy behind a long line: how far behind the copy is, and how soon it catches up and serves."""
