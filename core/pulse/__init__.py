"""Pulses: rates that many clients keep together, their control law, their grants (spec/pulse 1.1).

Uses only the limits and the operations.
"""
