"""Grid Long Short-Term Memory (Kalchbrenner, Danihelka, Graves) in PyTorch.

The public names are listed in ``__init__.pyi``. Each is imported when it is first asked for: PyTorch
takes seconds to load, and the command's help should not.
"""

import lazy_loader

__version__ = "0.1.0"

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
