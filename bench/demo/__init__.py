"""Real work on a real cluster whose leader is killed in the middle: `python -m bench.demo`."""
