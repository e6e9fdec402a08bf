"""The project's database: rows of an outbox, marks of tasks that happen once, and warnings about transactions."""
