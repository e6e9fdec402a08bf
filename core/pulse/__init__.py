"""Pulses: rates shared by many clients, with their control law and their grants (spec/pulse 1.1).

Uses only the limits and the operations.
"""
