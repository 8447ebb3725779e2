"""Unknown keyword arguments: reported under the class that was called, with a way out."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from gridlstm import (
    ConvolutionalNetwork,
    DeepGridLSTM,
    GatedFeedbackLSTM,
    ImageGridLSTM,
    ImageMultidimensionalLSTM,
    MultiplicativeRNN,
    Reencoder,
    ReNet,
    SequenceGridLSTM,
    StackedLSTM,
)

NETWORKS: dict[str, Callable[..., object]] = {
    "SequenceGridLSTM": partial(SequenceGridLSTM, 5, 6),
    "StackedLSTM": partial(StackedLSTM, 5, 6),
    "MultiplicativeRNN": partial(MultiplicativeRNN, 5, 6),
    "GatedFeedbackLSTM": partial(GatedFeedbackLSTM, 5, 6),
    "DeepGridLSTM": partial(DeepGridLSTM, 5, 6, 2),
    "Reencoder": partial(Reencoder, 5, 5, 6),
    "ImageGridLSTM": partial(ImageGridLSTM, 8, 6, relu_size=4),
    "ImageMultidimensionalLSTM": partial(ImageMultidimensionalLSTM, 8, 6, relu_size=4),
    "ReNet": partial(ReNet, 8, 6, relu_size=4),
    "ConvolutionalNetwork": partial(ConvolutionalNetwork, 8, 6, relu_size=4),
}
SEQUENCES = list(NETWORKS)[:4]


def refused(name: str, **options: Any) -> str:
    with pytest.raises(TypeError) as error:
        NETWORKS[name](**options)
    return str(error.value)


@pytest.mark.parametrize("name", NETWORKS)
def test_misspelt_arguments(name: str) -> None:
    assert refused(name, devise="cpu") == f"{name}: argument devise is unknown; did you mean device?"
    if "Grid" in name or name == "Reencoder":
        message = f"{name}: argument forget_bais is unknown; did you mean forget_bias?"
        assert refused(name, forget_bais=1.0) == message


@pytest.mark.parametrize("name", NETWORKS)
def test_arguments_that_are_like_no_other(name: str) -> None:
    message = refused(name, xyzzy=1)
    assert message.startswith(f"{name}: argument xyzzy is unknown; expected ")
    assert "hidden_size, " in message
    assert message.endswith("dtype")


@pytest.mark.parametrize("name", SEQUENCES)
def test_arguments_of_nn_lstm(name: str) -> None:
    if name != "SequenceGridLSTM":
        assert refused(name, bidirectional=True) == (
            f"{name}: argument bidirectional is not supported; "
            "run a second network over the flipped sequences and concatenate the outputs"
        )
    assert refused(name, proj_size=3) == (
        f"{name}: argument proj_size is not supported; put a torch.nn.Linear after the network"
    )


def test_a_subclass_is_called_by_its_own_name() -> None:
    class Mine(SequenceGridLSTM):
        pass

    with pytest.raises(
        TypeError, match=r"^Mine: argument num_layer is unknown; did you mean num_layers\?$"
    ):
        Mine(5, 6, num_layer=2)  # type: ignore[call-arg]
