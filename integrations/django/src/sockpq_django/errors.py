"""Errors in the results of tasks that did not end by an exception of their function."""

from __future__ import annotations


class TaskCancelled(Exception):
    """The task was cancelled, by cancel() or by an operator."""


class TaskExpired(Exception):
    """No worker took the task within the TTL of its queue."""


class TaskRefused(Exception):
    """The cluster has refused the task of an outbox for good, for example because of its size; the text says why."""


class WorkerLost(Exception):
    """The worker, or its child process, ended while it ran the task; the text says how."""


class TaskUnknown(Exception):
    """The job names no task that this project has, or cannot be read."""
