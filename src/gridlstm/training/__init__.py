"""Training that survives: one loop, a run directory that explains itself, checkpoints."""
