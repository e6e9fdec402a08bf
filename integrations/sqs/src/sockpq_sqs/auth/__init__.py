"""Users and signatures: the users file, and signature version 4 of AWS, in headers and in URLs."""

from sockpq_sqs.auth.clients import Clients
from sockpq_sqs.auth.gate import Gate, OpenGate, Sender, UsersGate
from sockpq_sqs.auth.head import Head
from sockpq_sqs.auth.users import Account, Users
from sockpq_sqs.auth.verifier import Verifier

__all__ = ["Account", "Clients", "Gate", "Head", "OpenGate", "Sender", "Users", "UsersGate", "Verifier"]
