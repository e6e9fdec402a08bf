"""The program `pqworker`: its options, its configuration file, its signals, and what it shows."""
