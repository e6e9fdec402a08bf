"""The samples of figures: rings, courses, rates, and the file that keeps them."""
