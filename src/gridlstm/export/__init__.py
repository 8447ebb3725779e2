"""Networks as ONNX files, with dynamic batch sizes and lengths. It needs ``gridlstm[onnx]``.

>>> from gridlstm import SequenceGridLSTM
>>> network = SequenceGridLSTM(5, 8, num_layers=3, batch_first=True)
>>> interface_of(network).axes
['batch', 'time']
"""

from gridlstm.export.interface import Input, Interface, interface_of
from gridlstm.export.onnx_file import Exported, Port, to_onnx
from gridlstm.export.scan import ExportError, use_scan
from gridlstm.export.verify import can_verify, largest_difference

__all__ = [
    "ExportError",
    "Exported",
    "Input",
    "Interface",
    "Port",
    "can_verify",
    "interface_of",
    "largest_difference",
    "to_onnx",
    "use_scan",
]
