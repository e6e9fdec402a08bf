"""A simulated cluster and its copy in another region, with a bad line between them."""
