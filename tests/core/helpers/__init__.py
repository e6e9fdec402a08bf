"""What the tests of core share: logs, snapshots made by hand, comparisons with the model. No tests."""
