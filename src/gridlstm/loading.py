"""The public function that loads a trained network."""

from os import PathLike

from torch import nn

from gridlstm.extras import check_installed

__all__ = ["load"]


def load(run: str | PathLike[str]) -> nn.Module:
    """Loads the trained network of a run, in evaluation mode and on the CPU.

    The data that it was trained on is not needed: an alphabet or a vocabulary is part of the network.
    If the run has not ended, the network is that of its last checkpoint.

    Args:
        run: the directory of a run, or else the name of a network that comes with the package:
            ``"characters"``, ``"wikipedia"``, ``"translation"``, ``"images"`` or ``"memorization"``.

    Returns:
        The module that the experiment trains: a
        :class:`~gridlstm.models.character_model.CharacterModel`, a
        :class:`~gridlstm.experiments.translation.text_translator.TextTranslator`, a network of images
        such as :class:`~gridlstm.ImageGridLSTM`, or the network of an algorithmic task.

    Raises:
        ImportError: if the packages of ``gridlstm[experiments]`` are not installed.
        RunError: if there is no such run, or it has no weights yet.
        WeightsError: if the weights cannot be read, or are those of another network.
        CheckpointError: if no checkpoint can be read.

    >>> network = load("images")
    >>> type(network).__name__, network.image_size
    ('ImageGridLSTM', (28, 28))
    """
    check_installed("gridlstm.load")
    # Not at the top: the layer alone does not have these packages.
    from gridlstm.experiments.trained import find_run, load_network

    return load_network(find_run(run))
