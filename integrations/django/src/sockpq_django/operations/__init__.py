"""Tools for operators: the app that workers run, the relay of an outbox, failed tasks, and health checks."""
