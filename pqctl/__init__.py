"""pqctl, the operator's command line."""
