"""The commands of ``gridlstm``; ``options`` has what can be asked of them."""

from rich.console import Console

from gridlstm.commands.options import Classify, Collect, Eval, Generate, List, Plot, Score, Translate

__all__ = ["serve"]


def serve(options: Classify | Collect | Eval | Generate | List | Plot | Score | Translate) -> None:
    """Runs one of the commands that look at runs.

    Raises:
        SystemExit: 2 if a run is not what it should be.
    """
    from gridlstm.commands import characters, evaluate, images, overview, plot, translation
    from gridlstm.training.checkpoint import CheckpointError
    from gridlstm.training.rundir import RunError
    from gridlstm.training.weights import WeightsError

    try:
        if isinstance(options, Eval):
            evaluate.run(options)
        elif isinstance(options, Plot):
            plot.run(options)
        elif isinstance(options, Generate):
            characters.run_generate(options)
        elif isinstance(options, Score):
            characters.run_score(options)
        elif isinstance(options, Translate):
            translation.run_translate(options)
        elif isinstance(options, Classify):
            images.run_classify(options)
        elif isinstance(options, List):
            overview.overview(options)
        else:
            overview.collect(options)
    except (RunError, CheckpointError, WeightsError, ValueError, OSError) as error:
        name = type(options).__name__.lower()
        Console(stderr=True).print(
            f"gridlstm {name}: {error}", highlight=False, soft_wrap=True, markup=False
        )
        raise SystemExit(2) from None
