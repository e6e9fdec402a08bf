"""Flows, whose steps run one after another or in parallel, and batches, tasks that end together.

The room makes the commands and reads their answers; App has the methods that users call.
"""
