"""The command ``gridlstm``. PyTorch is imported only by a command that runs."""

import tyro
from tyro.conf import OmitArgPrefixes

from gridlstm.bench.options import Bench

__all__ = ["main"]


def main() -> None:
    """Runs the command that the arguments name."""
    options = tyro.extras.subcommand_cli_from_dict(
        {"bench": Bench},
        prog="gridlstm",
        description="Grid Long Short-Term Memory: train, evaluate, measure.",
        config=(OmitArgPrefixes,),
    )
    if isinstance(options, Bench):
        from gridlstm.bench.command import run

        run(options)
