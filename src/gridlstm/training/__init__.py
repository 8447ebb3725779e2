"""Training that can be interrupted at any time: the loop, checkpoints and run directories."""
