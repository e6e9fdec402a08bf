"""The samples of figures: rings, series, rates, and the file that keeps them."""
