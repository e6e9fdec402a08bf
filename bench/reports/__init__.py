"""The results of benchmarks: records, tables and plots."""
