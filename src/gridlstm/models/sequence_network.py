"""The base class of networks over sequences: their sizes, and checks of sequences and states."""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from torch import Tensor, nn

from gridlstm.checks import check_positive, check_tensor
from gridlstm.state import State

__all__ = ["SequenceNetwork", "check_state", "time_first"]


def time_first(x: Tensor, input_size: int, batch_first: bool, like: Tensor) -> Tensor:
    """Checks a batch of sequences, and returns it as ``[time, batch, input]``.

    Raises:
        TypeError: if it is not a tensor or has the wrong dtype.
        ValueError: if its shape is wrong or there are no time steps.
    """
    axes = ["batch", "time"] if batch_first else ["time", "batch"]
    check_tensor("x", x, [*axes, input_size], like)
    x = x.transpose(0, 1) if batch_first else x
    if len(x) == 0:
        raise ValueError("x: expected at least 1 time step, got 0")
    return x


def check_state(
    state: tuple[Tensor, Tensor | None] | None, shape: Sequence[int], like: Tensor
) -> State:
    """Checks an initial state, whose vectors have ``shape``. Default: hidden vectors of zeros.

    Raises:
        TypeError: if it is not a pair of tensors or has the wrong dtype.
        ValueError: if a shape is wrong.
    """
    if state is None:
        return State(like.new_zeros(shape))
    if not isinstance(state, tuple | list) or len(state) != 2:
        raise TypeError(f"state: expected a pair (hidden, memory), got {type(state).__name__}")
    hidden, memory = state
    check_tensor("state hidden", hidden, shape, like)
    if memory is not None:
        check_tensor("state memory", memory, shape, like)
    return State(hidden, memory)


class SequenceNetwork(nn.Module, ABC):
    """A network over batches of sequences with a state, ``[layers, batch, hidden]``.

    Args:
        input_size: the length of an input vector.
        hidden_size: the length of the hidden vectors.
        num_layers: the number of layers.
        batch_first: inputs and outputs are ``[batch, time, ...]``; states stay as they are.
    """

    bias: nn.Parameter | None

    def __init__(
        self, input_size: int, hidden_size: int, num_layers: int, *, batch_first: bool
    ) -> None:
        super().__init__()
        check_positive("input_size", input_size)
        check_positive("hidden_size", hidden_size)
        check_positive("num_layers", num_layers)
        self.input_size = input_size
        self.hidden_size = self.output_size = hidden_size
        self.num_layers = num_layers
        self.batch_first = batch_first

    @abstractmethod
    def run(self, x: Tensor, state: State) -> tuple[Tensor, State]:
        """``[time, batch, input]`` to ``[time, batch, output]``, and the state after the last step."""

    def forward(
        self, x: Tensor, state: tuple[Tensor, Tensor | None] | None = None
    ) -> tuple[Tensor, State]:
        """Runs the network over a batch of sequences.

        Args:
            x: the inputs, ``[time, batch, input]``, or ``[batch, time, input]`` with
                ``batch_first``; or one sequence, ``[time, input]``.
            state: the initial vectors, each ``[layers, batch, hidden]`` (no batch axis for one
                sequence). Default: zero.

        Returns:
            The output, laid out as ``x``, and the state after the last step, to be passed in with
            the next inputs.

        Raises:
            TypeError: if an argument is of the wrong type or dtype.
            ValueError: if a shape is wrong or there are no time steps.
        """
        like = next(self.parameters())
        if isinstance(x, Tensor) and x.dim() == 2:
            check_tensor("x", x, ["time", self.input_size], like)
            if state is not None:
                state = check_state(state, (self.num_layers, self.hidden_size), like)
                state = state.map(lambda t: t.unsqueeze(1))
            batch = 0 if self.batch_first else 1
            output, end = self(x.unsqueeze(batch), state)
            return output.squeeze(batch), end.map(lambda t: t.squeeze(1))
        x = time_first(x, self.input_size, self.batch_first, like)
        shape = (self.num_layers, x.shape[1], self.hidden_size)
        output, end = self.run(x, check_state(state, shape, like))
        return (output.transpose(0, 1) if self.batch_first else output), end

    def describe(self, *arguments: str) -> str:
        """The sizes, the given arguments, and those that differ from their defaults."""
        shown = [f"{self.input_size}, {self.hidden_size}", *arguments]
        if self.bias is None:
            shown.append("bias=False")
        if self.batch_first:
            shown.append("batch_first=True")
        return ", ".join(shown)
