"""The blocking client. All files but heartbeat.py are made from `_async` by client/tools/faces.py: edit there.

A coroutine of the engine never suspends over the blocking network, so that `run` takes it to its end in one go.
"""
