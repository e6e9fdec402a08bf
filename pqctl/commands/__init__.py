"""One module for each word that follows `pqctl`."""
