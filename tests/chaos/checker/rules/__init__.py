"""One promise per module: each rule yields the violations it is sure of. May use the evidence, not another room."""
