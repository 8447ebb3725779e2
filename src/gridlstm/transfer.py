"""Tests of user-defined transfer functions and cells: whether the engines can use them."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor, nn

from gridlstm.cells import Cell, Transfer
from gridlstm.dim import Dim, impure_error
from gridlstm.state import State

__all__ = ["check_transform"]


def check_transform(dim: Dim, weight: Tensor) -> None:
    """Tests a user-defined function or cell by calling it, so that errors are found early.

    An engine calls a function on any number of vectors at once, and again in the backward pass. Its
    gradients are correct only if the function is a pure function of each vector.

    Args:
        dim: the dimension.
        weight: its V (Eq. 8), for dtype and device.

    Raises:
        ValueError: if a cell returns vectors of another shape; if a function fails, changes shapes or
            dtypes, draws random numbers, depends on earlier calls, mixes vectors, or depends on
            parameters or on the mode of a module.
    """
    if isinstance(dim.transform, Cell):
        _check_cell(dim, dim.transform, weight)
    if isinstance(dim.transform, str | Cell):
        return
    d = dim.hidden_size or 1
    device = "cpu" if weight.is_meta else weight.device
    # Also for a grid that is created under ``no_grad``: detect parameters that the function uses.
    with torch.inference_mode(False), torch.enable_grad():
        x = torch.linspace(-3, 3, 2 * d, dtype=weight.dtype, device=device).view(2, d)
        y = _call(dim, x)
        if y.requires_grad:
            raise impure_error(dim.name, dim.transform, "depends on a tensor with gradients")
        if type(y) is Tensor:  # Fake tensors have no values to compare.
            with _training(dim.transform, True):
                _check_pure(dim, x)
                y = _call(dim, x)
            with _training(dim.transform, False):
                if not _same(_call(dim, x), y):
                    raise impure_error(
                        dim.name, dim.transform, "differs in training and evaluation mode"
                    )


def _check_cell(dim: Dim, cell: Cell, weight: Tensor) -> None:
    d, dtype = dim.hidden_size or 1, weight.dtype
    device = "cpu" if weight.is_meta else weight.device

    def zeros(count: int) -> Tensor:
        return torch.zeros(2, count * d, dtype=dtype, device=device)

    old = State(zeros(1), zeros(1) if cell.has_memory else None)
    vectors = {name: zeros(count) for name, count in cell.vectors.items()}
    new = cell.forward(zeros(cell.rows), old, vectors)
    for name, *pair in zip(State._fields, new, old, strict=True):
        actual, expected = (None if t is None else (list(t.shape), t.dtype) for t in pair)
        if actual != expected:
            raise ValueError(
                f'dimension "{dim.name}": transform: expected {cell!r} to return {name} {expected}, '
                f"got {actual}"
            )


def _check_pure(dim: Dim, x: Tensor) -> None:
    generator = _generator(x)
    first = _call(dim, x)
    if not torch.equal(_generator(x), generator):
        raise impure_error(dim.name, dim.transform, "draws random numbers")
    y, other = first.clone(), 5 - 3 * x
    _call(dim, other)
    if not _same(first, y):
        raise impure_error(dim.name, dim.transform, "overwrites what an earlier call returned")
    if not _same(_call(dim, x), y):
        raise impure_error(dim.name, dim.transform, "returns something else when called again")
    if not all(_same(*pair) for pair in _regroup(dim, x, other, y)):
        raise impure_error(dim.name, dim.transform, "mixes vectors, or depends on how many there are")


def _regroup(dim: Dim, x: Tensor, other: Tensor, y: Tensor) -> Iterator[tuple[Tensor, Tensor]]:
    """The same vectors beside others, alone, and along other axes: pairs of actual and expected."""
    yield _call(dim, torch.stack((x[0], other[1])))[0], y[0]
    yield _call(dim, torch.stack((other[0], x[1])))[1], y[1]
    yield _call(dim, x[:1]), y[:1]
    yield _call(dim, x.unsqueeze(0)), y.unsqueeze(0)
    yield _call(dim, x.unsqueeze(1)), y.unsqueeze(1)


def _call(dim: Dim, x: Tensor) -> Tensor:
    assert not isinstance(dim.transform, str | Cell), "a callable"
    where = f'dimension "{dim.name}": transform: '
    try:
        y = dim.transform(x.clone())  # It may modify its argument.
    except Exception as error:
        raise ValueError(
            f"{where}expected a function of vectors {list(x.shape)}, "
            f"got {type(error).__name__}: {error}"
        ) from error
    actual = (list(y.shape), y.dtype) if isinstance(y, Tensor) else type(y).__name__
    if actual != (list(x.shape), x.dtype):
        raise ValueError(
            f"{where}expected a function that keeps shape and dtype, {list(x.shape)} and {x.dtype}, "
            f"got {actual}"
        )
    return y


def _same(actual: Tensor, expected: Tensor) -> bool:
    """Whether tensors are equal up to rounding, which depends on the number of vectors."""
    a, b = (t.detach().cpu().double() for t in (actual, expected))
    largest = b[b.isfinite()].abs().max().item() if b.isfinite().any() else 0.0
    tolerance = 16 * torch.finfo(expected.dtype).eps * largest
    return torch.allclose(a, b, rtol=0, atol=tolerance, equal_nan=True)


def _generator(like: Tensor) -> Tensor:
    """The state of the device's random number generator."""
    source = torch if like.device.type == "cpu" else torch.get_device_module(like.device)
    state: Tensor = source.get_rng_state()
    return state


@contextmanager
def _training(transfer: str | Cell | Transfer, mode: bool) -> Iterator[None]:
    """Sets the mode of a module within a ``with`` statement."""
    modules = list(transfer.modules()) if isinstance(transfer, nn.Module) else []
    before = [module.training for module in modules]
    try:
        for module in modules:
            module.training = mode
        yield
    finally:
        for module, was in zip(modules, before, strict=True):
            module.training = was
