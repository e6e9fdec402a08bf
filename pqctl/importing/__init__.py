"""Jobs of other programs: moving them here. Uses what is before it in the order of rooms."""
