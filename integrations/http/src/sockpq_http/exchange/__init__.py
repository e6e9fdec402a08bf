"""Parts that all families of requests share: the caller, views of jobs, rates of queues."""
