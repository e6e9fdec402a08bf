"""The pages: each a function from a View (and the words of the address) to HTML."""
