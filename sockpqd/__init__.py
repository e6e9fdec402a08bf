"""sockPQd, the job queue: every package of the server is imported from here.

The packages themselves are folders of the repository's top, and links in this one; a wheel holds them as one package,
so that an installation adds no other name than this to Python's (pyproject.toml).
"""
