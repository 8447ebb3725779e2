"""What all figures share: their options, and how they are saved."""
