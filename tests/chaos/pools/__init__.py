"""Workers under faults: three pools that are killed, frozen and cut off, and the judgement of what their tasks did."""
