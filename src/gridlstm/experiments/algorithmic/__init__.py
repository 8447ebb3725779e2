"""What the three algorithmic experiments share: addition, memorization and parity."""
