"""Ways to run a grid. All give the same results; ``reference`` is the specification.

An engine is a function ``run`` with the signature of :func:`gridlstm.engines.reference.run`.
"""

from gridlstm.engines import reference, wavefront
from gridlstm.engines.dispatch import Engine, explain

__all__ = ["ENGINES", "Engine", "explain", "reference", "wavefront"]

ENGINES = {"reference": reference.run, "wavefront": wavefront.run}
