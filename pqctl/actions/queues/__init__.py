"""`pqctl queue ..`, `topic ..`, `config` and `sched ..`: counts, settings and contents. May use what actions may."""
