"""What judges runs of several kinds."""
