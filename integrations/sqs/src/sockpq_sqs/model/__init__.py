"""The actions of SQS as typed structs: requests, answers and errors. Knows neither HTTP nor queues."""

from sockpq_sqs.model.actions import ACTIONS, Action

__all__ = ["ACTIONS", "Action"]
