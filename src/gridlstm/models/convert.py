"""Weights from and to ``torch.nn.LSTM``: a Stacked LSTM is a Grid LSTM (section 3.3).

With ``h' = g_o ⊙ tanh(m')``, depth as a priority identity dimension and ``V = [I 0]``, a grid passes
the new hidden vector of time up unchanged. The weights of the time transform are PyTorch's, side by
side: ``W = [W_hh W_ih]``, with the gates in another order.
"""

import torch
from torch import Tensor, nn

from gridlstm.cells.lstm import GATES
from gridlstm.checks import check_dropout
from gridlstm.models.sequence import SequenceGridLSTM

__all__ = ["from_torch", "to_torch"]

_TORCH_GATES = ("u", "f", "c", "o")
"""The order of the gates in PyTorch, where they are called i, f, g, o."""


@torch.no_grad()
def from_torch(lstm: nn.LSTM) -> SequenceGridLSTM:
    """Converts a ``torch.nn.LSTM`` to a Grid LSTM that computes the same.

    Its outputs, states and gradients agree with those of ``lstm`` up to rounding. ``V`` and the
    projection of the input, which make it a Stacked LSTM, are frozen. If ``lstm`` is frozen, all
    parameters are. Dropout between layers is kept, with other random numbers.

    Raises:
        TypeError: if ``lstm`` is not a ``torch.nn.LSTM``.
        ValueError: if it has projections, two directions or a dropout of 1, which a grid does not
            support.

    >>> lstm = nn.LSTM(5, 8, num_layers=2)
    >>> x = torch.randn(7, 3, 5)
    >>> torch.allclose(from_torch(lstm)(x)[0], lstm(x)[0], atol=1e-6)
    True
    """
    if not isinstance(lstm, nn.LSTM):
        raise TypeError(f"lstm: expected a torch.nn.LSTM, got {type(lstm).__name__}")
    for option, plain in (("proj_size", 0), ("bidirectional", False)):
        value = getattr(lstm, option)
        if value != plain:
            raise ValueError(f"lstm: expected {option}={plain}, got {option}={value}")
    check_dropout(lstm.dropout, "lstm: dropout")
    h, like = lstm.hidden_size, lstm.all_weights[0][0]
    net = SequenceGridLSTM(
        lstm.input_size,
        h,
        lstm.num_layers,
        tied=False,
        depth="identity",
        priority=True,
        depth_size=max(lstm.input_size, h),
        batch_first=lstm.batch_first,
        output="standard",
        bias=lstm.bias,
        dropout=lstm.dropout,
        dropout_between=["depth"],
        device=like.device,
        dtype=like.dtype,
    )
    net.train(lstm.training)
    V, V_bias = net.grid.weights_of("depth")
    for frozen in (V, V_bias, *net.projection.parameters()):
        if frozen is not None:
            frozen.requires_grad_(False).zero_()
    net.projection.linear.weight.fill_diagonal_(1)
    V[..., :h, :h] = torch.eye(h, device=V.device)  # V = [I 0]: the columns of time come first.
    weight, bias = net.grid.weights_of("time")
    weight.zero_()
    if not any(parameter.requires_grad for parameter in lstm.parameters()):
        net.requires_grad_(False)
    for layer, (from_depth, from_time, *biases) in enumerate(lstm.all_weights):
        weight[layer, :, :h] = _reorder(from_time, _TORCH_GATES, GATES)
        weight[layer, :, h : h + from_depth.shape[1]] = _reorder(from_depth, _TORCH_GATES, GATES)
        if bias is not None:
            bias[layer] = _reorder(biases[0] + biases[1], _TORCH_GATES, GATES)
    return net


@torch.no_grad()
def to_torch(net: SequenceGridLSTM) -> nn.LSTM:
    """Converts a Grid LSTM that is a Stacked LSTM to a ``torch.nn.LSTM`` that computes the same.

    The projection of the input and ``V`` are linear, so they are multiplied into the weights that
    read them. Only ``V`` at the top has to be ``[I 0]``.

    Raises:
        TypeError: if ``net`` is not a :class:`SequenceGridLSTM`.
        ValueError: if it is not a Stacked LSTM; the message says why.

    >>> net = from_torch(nn.LSTM(5, 8, num_layers=2))
    >>> to_torch(net)
    LSTM(5, 8, num_layers=2)
    """
    if not isinstance(net, SequenceGridLSTM):
        raise TypeError(f"net: expected a SequenceGridLSTM, got {type(net).__name__}")
    grid, h = net.grid, net.hidden_size
    time, depth = grid.dims
    between_layers = grid.dropout_between == ("depth",) and not grid.dropout_tied
    for argument, value, expected in (
        ("bidirectional", net.bidirectional, False),
        ("depth", depth.transform, "identity"),
        ("priority", depth.priority, True),
        ("reverse", time.reverse, False),
        ("output", grid.output, "standard"),
        ("layer_norm", grid.layer_norm, False),
        ("dropout", 0 if between_layers else grid.dropout, 0),
        ("zoneout", grid.block.has_zoneout and grid.zoneout, False),
    ):
        if value != expected:
            raise ValueError(
                f"net: expected {argument}={expected!r} for a Stacked LSTM, got {argument}={value!r}"
            )
    weight, bias = _by_layer(net, "time")
    V, V_bias = _by_layer(net, "depth")
    if V[..., h:].any():
        raise ValueError("net: expected V = [V' 0] for a Stacked LSTM, got a V that reads depth")
    identity = torch.eye(V.shape[1], h, device=V.device, dtype=V.dtype)
    if V_bias[-1].any() or not torch.equal(V[-1, :, :h], identity):
        raise ValueError(
            "net: expected V = [I 0] and no bias at the top for a Stacked LSTM, got others"
        )
    lstm = nn.LSTM(
        net.input_size,
        h,
        net.num_layers,
        bias=grid.bias,
        batch_first=net.batch_first,
        dropout=grid.dropout if net.num_layers > 1 else 0.0,  # Without a warning that it has no effect.
        device=weight.device,
        dtype=weight.dtype,
    )
    lstm.train(net.training)
    # What each layer reads along depth is an affine map of the input or of the layer below.
    first = net.projection.linear
    maps = [first.weight, *V[..., :h]]
    offsets = [V_bias.new_zeros(V.shape[1]) if first.bias is None else first.bias, *V_bias]
    for layer, (weight_ih, weight_hh, *biases) in enumerate(lstm.all_weights):
        from_time, from_depth = weight[layer, :, :h], weight[layer, :, h:]
        weight_ih.copy_(_reorder(from_depth @ maps[layer], GATES, _TORCH_GATES))
        weight_hh.copy_(_reorder(from_time, GATES, _TORCH_GATES))
        if biases:
            total = bias[layer] + from_depth @ offsets[layer]
            biases[0].copy_(_reorder(total, GATES, _TORCH_GATES))
            biases[1].zero_()
    return lstm


def _by_layer(net: SequenceGridLSTM, name: str) -> tuple[Tensor, Tensor]:
    """Weights ``[layers, rows, H]`` and biases ``[layers, rows]``, tied or not; zero without biases."""
    weight, bias = net.grid.weights_of(name)
    rows = weight.new_zeros(weight.shape[:-1]) if bias is None else bias
    return weight.expand(net.num_layers, -1, -1), rows.expand(net.num_layers, -1)


def _reorder(rows: Tensor, before: tuple[str, ...], after: tuple[str, ...]) -> Tensor:
    gates = dict(zip(before, rows.chunk(len(before)), strict=True))
    return torch.cat([gates[gate] for gate in after])
