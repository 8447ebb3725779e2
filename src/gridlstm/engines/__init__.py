"""Ways to run a grid. All give the same results; ``reference`` is the specification."""

from typing import Literal

from gridlstm.engines import reference, wavefront

__all__ = ["ENGINES", "Engine", "reference", "wavefront"]

Engine = Literal["reference", "wavefront"]

ENGINES = {"reference": reference.run, "wavefront": wavefront.run}
