"""The backend in C: a small kernel, compiled on the machine that uses it."""

from gridlstm.engines.native.build import kernel_name
from gridlstm.engines.native.native_backend import NativeBackend, use_native

__all__ = ["NativeBackend", "kernel_name", "use_native"]
