"""`pqctl region ..`: a cluster and its copy in another region."""
