"""A cluster of real nodes on loopback, for the demo, the benchmarks and the tests."""
