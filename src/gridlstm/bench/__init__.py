"""Benchmarks of the engines, of training, of generation and of beam search: ``gridlstm bench``."""
