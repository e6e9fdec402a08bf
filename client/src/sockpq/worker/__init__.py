"""Workers: functions that are called for jobs. `App` declares them, the program `pqworker` runs them.

    app = App()

    @app.task("mail", expire=60, tries=5)
    def send(to: str, subject: str) -> None: ...

    send.put("ann", "hi")

It may use every other room of the library; `testing` alone may use it. Other distributions that it needs
(sockpq[worker]) are imported where they are used, so that a program that only puts tasks needs none of them.
"""

from sockpq.worker.app import App
from sockpq.worker.current import current_job
from sockpq.worker.errors import (
    BatchCancelled,
    GiveUp,
    JobCancelled,
    Retry,
    Sleep,
    SlowDown,
    SoftTimeLimit,
    TaskFailed,
    UnknownTask,
)
from sockpq.worker.flows.batch import AsyncBatch, AsyncBatchHandle, Batch, BatchHandle
from sockpq.worker.flows.handle import AsyncFlowHandle, FlowHandle, Graph, Node
from sockpq.worker.handle import AsyncHandle, Handle
from sockpq.worker.signature import Canvas, Signature, chain, group
from sockpq.worker.task import Task, TaskCall

__all__ = [
    "App",
    "AsyncBatch",
    "AsyncBatchHandle",
    "AsyncFlowHandle",
    "AsyncHandle",
    "Batch",
    "BatchCancelled",
    "BatchHandle",
    "Canvas",
    "FlowHandle",
    "GiveUp",
    "Graph",
    "Handle",
    "JobCancelled",
    "Node",
    "Retry",
    "Signature",
    "Sleep",
    "SlowDown",
    "SoftTimeLimit",
    "Task",
    "TaskCall",
    "TaskFailed",
    "UnknownTask",
    "chain",
    "current_job",
    "group",
]
