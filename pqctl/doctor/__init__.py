"""`pqctl doctor`: checks of the cluster, of access to it, and of the machine it runs on."""
