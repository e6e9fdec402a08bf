"""What the records of a run tell of each job: its hand-outs, when its lease was over, and when it surely waited."""
