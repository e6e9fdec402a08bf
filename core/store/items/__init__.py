"""Items: named groups of jobs, over one or several queues. Uses jobs and their lists, and the limits."""
