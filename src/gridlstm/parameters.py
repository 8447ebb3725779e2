"""The parameters of a grid: how they are made, initialised, and stacked for an engine."""

from collections.abc import Sequence
from weakref import WeakKeyDictionary, ref

import torch
from torch import Tensor, nn
from torch.optim.optimizer import register_optimizer_step_post_hook
from typing_extensions import Self

from gridlstm.block import Block, PhaseWeights, Transform
from gridlstm.dim import Dim
from gridlstm.engines.recording import is_graph, is_recorded, is_transformed
from gridlstm.fixed import FixedArguments
from gridlstm.grid_options import Init

__all__ = ["GridParameters"]


class _Stacked:
    """Stacked weights, and the parameters of which they were made, in the state that they had.

    Args:
        parameters: the parameters.
        weights: the stacked weights.
    """

    def __init__(self, parameters: Sequence[Tensor], weights: list[PhaseWeights]) -> None:
        self.weights = weights
        self._state = [(ref(t), t._version, t.data_ptr()) for t in parameters]

    def is_valid(self, parameters: Sequence[Tensor]) -> bool:
        """Whether these are the same parameters, unchanged."""
        return len(parameters) == len(self._state) and all(
            kept() is t and version == t._version and place == t.data_ptr()
            for t, (kept, version, place) in zip(parameters, self._state, strict=True)
        )


_stacked: WeakKeyDictionary["GridParameters", _Stacked] = WeakKeyDictionary()
"""The stacked weights of grids that ran without gradients."""
# PyTorch does not count what fused optimisers change.
register_optimizer_step_post_hook(lambda *_: _stacked.clear())


class GridParameters(FixedArguments):
    """The part of :class:`GridLSTM` that holds its parameters; see there for their names and shapes.

    Attributes:
        dims: the dimensions.
        block: the layout of a block.
        bias: whether there are biases.
        forget_bias: the initial bias of the forget gates.
        init: fills a weight matrix in place.
    """

    dims: tuple[Dim, ...]
    block: Block
    bias: bool
    forget_bias: float | None
    init: Init

    def _make_parameters(self, device: torch.device | str | None, dtype: torch.dtype | None) -> None:
        """Registers the parameters, uninitialised."""
        untied = [dim.size or 0 for dim in self.dims if not dim.tied]
        for dim, transform in zip(self.dims, self.block.transforms, strict=True):
            if dim.shares_weights_with is not None:
                continue
            d, cell = dim.hidden_size or 0, transform.cell
            shapes: dict[str, tuple[int, ...]] = {"weight": (d * cell.gates, self.block.hidden_size)}
            for kind, count in {"bias": cell.rows, **cell.vectors}.items():
                if self.bias or not kind.endswith("bias"):
                    shapes[kind] = (d * count,)
            for kind, shape in shapes.items():
                values = torch.empty(*untied, *shape, device=device, dtype=dtype)
                self.register_parameter(f"{kind}_{dim.name}", nn.Parameter(values))

    @torch.no_grad()
    def reset_parameters(self) -> None:
        """Initialises the weights with ``init``, and resets biases and other vectors."""
        for dim, transform in zip(self.dims, self.block.transforms, strict=True):
            if dim.shares_weights_with is not None:
                continue
            weight, bias = self.weights_of(dim.name)
            for matrix in weight.view(-1, dim.hidden_size or 0, weight.shape[-1]):
                self.init(matrix)
            if bias is not None:
                transform.cell.reset_bias_(bias, self.forget_bias or 0.0)
            for kind in transform.cell.vectors:
                vector = getattr(self, f"{kind}_{dim.name}", None)
                if vector is not None and kind != "bias":
                    transform.cell.reset_vector_(kind, vector)

    def weights_of(self, name: str) -> tuple[nn.Parameter, nn.Parameter | None]:
        """The weight and bias that a dimension uses, its own or shared ones."""
        owner = self._owner(name)
        return getattr(self, f"weight_{owner}"), getattr(self, f"bias_{owner}", None)

    def _owner(self, name: str) -> str:
        """The dimension whose weights a dimension uses: itself, or the one it shares them with."""
        for dim in self.dims:
            if dim.name == name:
                return dim.shares_weights_with or name
        names = ", ".join(dim.name for dim in self.dims)
        raise ValueError(f"name: expected one of {names}, got {name!r}")

    def phase_weights(self) -> list[PhaseWeights]:
        """The weights of each phase: the rows of its dimensions, stacked.

        Without gradients they are the same tensors in every call until a parameter changes.
        """
        if torch.is_grad_enabled() or is_graph() or is_recorded() or is_transformed():
            return self._stack()
        parameters = list(self.parameters())
        if not all(map(_counts_changes, parameters)):
            return self._stack()
        kept = _stacked.get(self)
        if kept is None or not kept.is_valid(parameters):
            with torch.inference_mode(False), torch.no_grad():  # A later call may not be in that mode.
                kept = _stacked[self] = _Stacked(parameters, self._stack())
        return kept.weights

    def _stack(self) -> list[PhaseWeights]:
        return [self._weights(phase) for phase in self.block.phases]

    def train(self, mode: bool = True) -> Self:
        """Sets the mode, and forgets what was made of the weights."""
        _stacked.pop(self, None)
        return super().train(mode)

    def _weights(self, phase: Sequence[int]) -> PhaseWeights:
        weights: list[Tensor] = []
        biases: list[Tensor] = []
        vectors: list[Tensor] = []
        for transform in (self.block.transforms[i] for i in phase):
            cell = transform.cell
            weights.append(cell.expand(self.weights_of(transform.name)[0], transform.hidden))
            vectors += [self._vector(transform, kind, n) for kind, n in cell.vectors.items()]
            # A cell that adds its bias itself has it among its vectors.
            kind = None if "bias" in cell.vectors else "bias"
            biases.append(self._vector(transform, kind, cell.rows))
        weight = torch.cat(weights, -2)
        plain = any("bias" not in self.block.transforms[i].cell.vectors for i in phase)
        bias, joined = (
            torch.cat(parts, -1).view(weight[..., 0, 0].numel(), -1) if used else None
            for parts, used in ((biases, self.bias and plain), (vectors, bool(vectors)))
        )
        return PhaseWeights(weight.view(-1, *weight.shape[-2:]), bias, joined)

    def _vector(self, transform: Transform, kind: str | None, count: int) -> Tensor:
        """A learned vector of a dimension, ``[*untied sizes, count · hidden]``; zero if it has none."""
        found: Tensor | None = getattr(self, f"{kind}_{self._owner(transform.name)}", None)
        if found is not None:
            return found
        weight, columns = self.weights_of(transform.name)[0], transform.hidden
        return weight.new_zeros(*weight.shape[:-2], count * (columns.stop - columns.start))


def _counts_changes(parameter: Tensor) -> bool:
    """Whether a parameter's version says if its values are still the same."""
    plain = type(parameter) in (Tensor, nn.Parameter) and not parameter.is_meta
    return plain and not parameter.is_inference()
