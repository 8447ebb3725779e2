"""The pointwise work of a step as a small C kernel, compiled on the machine that uses it."""

from gridlstm.engines.native.build import kernel_name
from gridlstm.engines.native.pointwise import NativePointwise, native, reasons_against

__all__ = ["NativePointwise", "kernel_name", "native", "reasons_against"]
