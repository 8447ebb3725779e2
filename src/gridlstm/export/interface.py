"""What goes into an exported network and what comes out: names, shapes and which axes are dynamic."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import singledispatch
from typing import Any, NoReturn

import torch
from torch import Tensor, nn
from torch.utils._pytree import tree_leaves

from gridlstm.export.scan import ExportError
from gridlstm.grid import GridLSTM
from gridlstm.models.character_model import CharacterModel
from gridlstm.models.deep import DeepGridLSTM
from gridlstm.models.image_network import ImageNetwork
from gridlstm.models.sequence import SequenceGridLSTM
from gridlstm.state import State

__all__ = ["Axis", "Input", "Interface", "interface_of"]

Axis = int | str
"""A fixed length, or the name of an axis of any length; ``"2*rows"`` is twice as long as ``"rows"``."""


@dataclass(frozen=True)
class Input:
    """An input of an exported network.

    Args:
        name: its name.
        axes: its shape. Axes of the same name have the same length.
        most: for integers, the largest value, or the axis whose length it is. Default: the input is a
            floating tensor.
    """

    name: str
    axes: tuple[Axis, ...]
    most: Axis | None = None

    def draw(self, sizes: Mapping[str, int], like: Tensor, generator: torch.Generator) -> Tensor:
        """A random tensor, for axes of these lengths, with the dtype of a parameter."""
        shape = [length(axis, sizes) for axis in self.axes]
        if self.most is None:
            return torch.randn(shape, dtype=like.dtype, generator=generator)
        return torch.randint(length(self.most, sizes) + 1, shape, generator=generator)


def length(axis: Axis, sizes: Mapping[str, int]) -> int:
    """The length of an axis.

    >>> length("2*rows", {"rows": 3})
    6
    """
    if isinstance(axis, int):
        return axis
    factor, name = split(axis)
    return factor * sizes[name]


def split(axis: str) -> tuple[int, str]:
    """The factor and the name of a dynamic axis."""
    factor, _, name = axis.rpartition("*")
    return int(factor or 1), name


def _call(module: nn.Module, *inputs: Tensor) -> Any:
    return module(*inputs)


@dataclass(frozen=True)
class Interface:
    """The inputs and outputs of an exported network.

    Args:
        inputs: the inputs.
        outputs: the names of the outputs.
        call: calls the module with the inputs. Its result may be nested, as ``(output, State)``.
            Default: the inputs are the arguments of the module.
        metadata: text by name that is stored in the file, such as an alphabet.
    """

    inputs: Sequence[Input]
    outputs: Sequence[str]
    call: Callable[..., Any] = _call
    metadata: Mapping[str, str] = field(default_factory=dict)

    @property
    def axes(self) -> list[str]:
        """The names of the dynamic axes."""
        named = [axis for value in self.inputs for axis in value.axes if isinstance(axis, str)]
        return list(dict.fromkeys(split(axis)[1] for axis in named))

    def draw(self, module: nn.Module, sizes: Mapping[str, int]) -> list[Tensor]:
        """Random inputs, the same for the same sizes, with the dtype of the module's parameters."""
        like, generator = next(module.parameters()), torch.Generator().manual_seed(0)
        return [value.draw(sizes, like, generator) for value in self.inputs]

    def run(self, module: nn.Module, inputs: Sequence[Tensor]) -> list[Tensor]:
        """The outputs of a module."""
        return [t for t in tree_leaves(self.call(module, *inputs)) if t is not None]


@singledispatch
def interface_of(
    module: nn.Module, *, step: bool = False, state: bool = False, lengths: bool = False
) -> Interface:
    """The interface of a module of this package.

    Args:
        module: a network.
        step: read one element of a sequence, without an axis of time, with the state going in and out.
        state: start from a state that is given, not from zero.
        lengths: read sequences of different lengths, which are given.

    Raises:
        ExportError: if the module has no known interface, or an option does not apply to it.
    """
    raise ExportError(
        f"{type(module).__name__} cannot be exported without an interface: expected a network of "
        "gridlstm, or the argument interface"
    )


@interface_of.register
def _(grid: GridLSTM, *, step: bool = False, state: bool = False, lengths: bool = False) -> Interface:
    """All sides as inputs and outputs; lengths for each dimension without a fixed size."""
    check_unused(grid, step=step, state=state)
    inputs, outputs = [], []
    for dim in grid.dims:
        others = [other for other in grid.dims if other is not dim]
        sizes = [other.name if other.size is None else other.size for other in others]
        for kind in ("hidden", "memory") if dim.has_memory else ("hidden",):
            inputs.append(Input(f"{dim.name}_{kind}", ("batch", *sizes, dim.hidden_size or 0)))
            outputs.append(f"new_{dim.name}_{kind}")
    measured = [dim.name for dim in grid.dims if lengths and dim.size is None]
    count = len(inputs)
    inputs += [Input(f"{name}_lengths", ("batch",), most=name) for name in measured]

    def call(module: nn.Module, *tensors: Tensor) -> list[State]:
        vectors = iter(tensors[:count])
        sides = {
            dim.name: State(next(vectors), next(vectors) if dim.has_memory else None)
            for dim in grid.dims
        }
        return list(
            module(sides, lengths=dict(zip(measured, tensors[count:], strict=True)) or None).values()
        )

    return Interface(inputs, outputs, call)


@interface_of.register
def _(
    network: SequenceGridLSTM, *, step: bool = False, state: bool = False, lengths: bool = False
) -> Interface:
    """Sequences, laid out as the network reads them, and the state along time."""
    check_step(step, lengths)
    if step and (network.bidirectional or network.grid.dims[0].reverse):
        raise ExportError(
            "step: expected a network that travels forwards, got one that starts at the end"
        )
    axes = ("batch", "time") if network.batch_first else ("time", "batch")
    time = axes.index("time")
    shape = (network.num_layers * len(network.directions), "batch", network.hidden_size)
    inputs = [Input("x", (*(["batch"] if step else axes), network.input_size))]
    if state or step:
        inputs += [Input("hidden", shape), Input("memory", shape)]
    if lengths:
        inputs.append(Input("lengths", ("batch",), most="time"))

    def call(module: nn.Module, x: Tensor, *rest: Tensor) -> tuple[Tensor, State]:
        start = State(*rest[:2]) if state or step else None
        output, end = module(
            x.unsqueeze(time) if step else x, start, lengths=rest[-1] if lengths else None
        )
        return output.squeeze(time) if step else output, end

    return Interface(inputs, ["output", "new_hidden", "new_memory"], call)


@interface_of.register
def _(
    model: CharacterModel, *, step: bool = False, state: bool = False, lengths: bool = False
) -> Interface:
    """Indices into the alphabet, which is part of the metadata, to scores."""
    check_step(step, lengths)
    check_unused(model, lengths=lengths)
    with torch.no_grad():
        end = model(torch.zeros(1, 1, dtype=torch.int64, device=model.alphabet.device))[1]
    kinds = [kind for kind, vectors in end._asdict().items() if vectors is not None]
    shape = (end.hidden.shape[0], "batch", end.hidden.shape[2])
    alphabet = model.alphabet.tolist()
    inputs = [Input("symbols", ("batch",) if step else ("batch", "time"), most=len(alphabet) - 1)]
    if state or step:
        inputs += [Input(kind, shape) for kind in kinds]

    def call(module: nn.Module, symbols: Tensor, *start: Tensor) -> tuple[Tensor, State]:
        scores, end = module(
            symbols.unsqueeze(1) if step else symbols, State(*start) if start else None
        )
        return scores.squeeze(1) if step else scores, end

    outputs = ["scores", *(f"new_{kind}" for kind in kinds)]
    return Interface(inputs, outputs, call, {"alphabet": json.dumps(alphabet)})


@interface_of.register
def _(
    network: DeepGridLSTM, *, step: bool = False, state: bool = False, lengths: bool = False
) -> Interface:
    """A batch of vectors."""
    check_unused(network, step=step, state=state, lengths=lengths)
    return Interface([Input("x", ("batch", network.input_size))], ["output"])


@interface_of.register
def _(
    network: ImageNetwork, *, step: bool = False, state: bool = False, lengths: bool = False
) -> Interface:
    """A batch of images to scores; to features, and of any size, if the network is a backbone."""
    check_unused(network, step=step, state=state, lengths=lengths)
    classifies = network.scores is not None
    multiples = (f"{network.scale}*rows", f"{network.scale}*columns")
    sizes: tuple[Axis, ...] = network.image_size if classifies else multiples
    images = Input("images", ("batch", network.channels, *sizes))
    return Interface([images], ["scores" if classifies else "features"])


def check_step(step: bool, lengths: bool) -> None:
    """A step has no lengths."""
    if step and lengths:
        raise ExportError("lengths: cannot be combined with step")


def check_unused(module: nn.Module, **options: bool) -> None:
    """Rejects options that do not apply to a module."""
    for name, value in options.items():
        if value:
            refuse(name, module)


def refuse(option: str, module: nn.Module) -> NoReturn:
    """The error for an option that does not apply."""
    raise ExportError(f"{option}: does not apply to {type(module).__name__}")
