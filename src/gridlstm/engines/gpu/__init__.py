"""The backend for GPUs, in Triton."""

from gridlstm.engines.gpu.triton_backend import TritonBackend

__all__ = ["TritonBackend"]
