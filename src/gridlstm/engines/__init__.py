"""Ways to run a grid. All give the same results; ``reference`` is the specification.

An engine is a function ``run`` with the signature of :func:`gridlstm.engines.reference.run`. The
wavefront engine is reached by way of :mod:`gridlstm.engines.operator`.
"""

from gridlstm.engines import operator, reference
from gridlstm.engines.dispatch import Engine, explain

__all__ = ["ENGINES", "Engine", "explain", "operator", "reference"]

ENGINES = {"reference": reference.run, "wavefront": operator.run}
