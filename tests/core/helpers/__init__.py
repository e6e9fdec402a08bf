"""Helpers of the tests of core: logs, snapshots made by hand, comparisons with the model. No tests."""
