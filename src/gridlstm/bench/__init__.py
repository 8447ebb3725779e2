"""Benchmarks of the engines, of generation and of beam search: ``gridlstm bench``."""
