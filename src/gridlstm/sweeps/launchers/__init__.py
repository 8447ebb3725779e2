"""Where the workers of a sweep run."""
