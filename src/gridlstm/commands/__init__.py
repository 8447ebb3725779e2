"""The commands that all experiments share, and the table of all commands."""
