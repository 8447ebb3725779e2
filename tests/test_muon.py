"""Muon: orthogonal updates for what recurs, Adam for the rest."""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn

from gridlstm import Dim, GridLSTM
from gridlstm.experiments.registry import EXPERIMENTS
from gridlstm.training.muon import Muon, orthogonalise
from gridlstm.training.settings import Training
from gridlstm.training.trainer import make_optimizer


@pytest.mark.parametrize("shape", [(1, 12, 12), (1, 32, 16), (1, 16, 32), (3, 24, 8)])
@pytest.mark.parametrize("product", [None, torch.bfloat16])
def test_singular_values_become_about_one_and_directions_stay(
    shape: tuple[int, ...], product: torch.dtype | None
) -> None:
    """For singular values from 0.003 to 1 of the norm."""
    torch.manual_seed(0)
    left, _, right = torch.linalg.svd(torch.randn(shape, dtype=torch.float64), full_matrices=False)
    values = torch.logspace(0, -2.5, min(shape[1:]), dtype=torch.float64)
    matrices = left @ torch.diag(values / values.norm()) @ right
    found = left.mT @ orthogonalise(matrices, product) @ right.mT
    assert found.dtype == torch.float64
    values = torch.diagonal(found, dim1=-2, dim2=-1)
    rounding = 0.3 if product else 0.0
    assert values.min() > 0.65 - rounding
    assert values.max() < 1.35 + rounding
    assert (found - torch.diag_embed(values)).abs().max() < (rounding or 1e-9)


@pytest.mark.parametrize("shape", [(1, 1), (1, 218), (256, 1), (64, 192)])
@pytest.mark.parametrize("product", [None, torch.bfloat16])
def test_matrices_of_rank_one_do_not_grow(shape: tuple[int, int], product: torch.dtype | None) -> None:
    """Their only singular value is their norm, which rounding may put above 1."""
    torch.manual_seed(0)
    matrices = torch.randn(50, shape[0], 1) @ torch.randn(50, 1, shape[1])
    largest = torch.linalg.matrix_norm(orthogonalise(matrices, product), ord=2)
    assert largest.min() > 0.65
    assert largest.max() < 1.35


def test_gates_are_orthogonalised_on_their_own() -> None:
    """The update of stacked gates is that of each gate as a parameter; other matrices are whole."""
    torch.manual_seed(0)
    stacked = nn.ParameterList([torch.randn(2, 12, 6), torch.randn(5, 6), torch.randn(3, 6)])
    copies = [p.detach().clone() for p in stacked]
    apart = nn.ParameterList([*copies[0].reshape(-1, 6).split(3), *copies[1:]])
    # Four gates: together they change the parameter in no direction more than it would as a whole.
    gate_rate = 0.02 * (12 / 4 / 6) ** 0.5
    optimizers = [Muon(stacked, 0.02, rows=3), Muon(apart[:8], gate_rate), Muon(apart[8:], 0.02)]
    for _ in range(3):
        for p in stacked:
            p.grad = torch.randn_like(p)
        gates = stacked[0].grad.reshape(-1, 6).split(3)
        for p, grad in zip(apart, [*gates, stacked[1].grad, stacked[2].grad], strict=True):
            p.grad = grad.clone()
        for optimizer in optimizers:
            optimizer.step()
    torch.testing.assert_close(stacked[0].reshape(-1, 6), torch.cat(list(apart[:8])))
    torch.testing.assert_close(stacked[1], apart[8])
    torch.testing.assert_close(stacked[2], apart[9])


def test_it_agrees_with_pytorchs_muon_on_a_matrix() -> None:
    if not hasattr(torch.optim, "Muon"):
        pytest.skip("PyTorch has a Muon from 2.9 on")
    torch.manual_seed(0)
    ours, theirs = nn.ParameterList([torch.randn(24, 12)]), nn.ParameterList([torch.zeros(24, 12)])
    theirs[0].data.copy_(ours[0].data)
    first = Muon(ours, 0.02)
    second = torch.optim.Muon(
        theirs.parameters(), 0.02, weight_decay=0.0, adjust_lr_fn="match_rms_adamw", nesterov=True
    )
    start = ours[0].detach().clone()
    for _ in range(5):
        ours[0].grad = torch.randn(24, 12)
        theirs[0].grad = ours[0].grad.clone()
        first.step()
        second.step()
    moved, expected = ours[0].detach() - start, theirs[0].detach() - start
    # Theirs averages with weights 0.95 and 0.05, and iterates in bfloat16 with other coefficients.
    assert torch.nn.functional.cosine_similarity(moved.flatten(), expected.flatten(), dim=0) > 0.97
    assert moved.norm().item() == pytest.approx(expected.norm().item(), rel=0.2)


def test_vectors_and_what_is_named_are_adams() -> None:
    torch.manual_seed(0)
    ours, theirs = nn.Linear(5, 3), nn.Linear(5, 3)
    theirs.load_state_dict(ours.state_dict())
    first = Muon(ours, 0.01, adam_parameters=["wei*"])
    second = torch.optim.Adam(theirs.parameters(), 0.01)
    for _ in range(5):
        x = torch.randn(4, 5)
        for network, optimizer in ((ours, first), (theirs, second)):
            network.zero_grad()
            network(x).square().mean().backward()
            optimizer.step()
    torch.testing.assert_close(ours.weight, theirs.weight)
    torch.testing.assert_close(ours.bias, theirs.bias)


SEQUENCES = ["scores.weight", "body.projection.linear.weight"]
WORDS = ["model.scores.weight", "model.source.weight", "model.target.weight"]


@pytest.mark.parametrize(
    ("experiment", "options", "adams"),
    [
        ("memorization", {"network": "tied-grid"}, SEQUENCES),
        ("memorization", {"network": "untied-grid"}, SEQUENCES),
        ("addition", {"network": "tied-stacked"}, ["scores.weight", "body.input_projection.weight"]),
        ("addition", {"network": "untied-stacked"}, ["scores.weight", "body.lstm.weight_ih_l0"]),
        ("parity", {"network": "untied-tanh"}, ["scores.weight", "body.projection.weight"]),
        ("characters", {"network": "shared-grid"}, SEQUENCES),
        (
            "characters",
            {"network": "multiplicative", "layers": 1},
            ["scores.weight", "body.weight_input"],
        ),
        ("characters", {"network": "gated-feedback"}, ["scores.weight", "body.weight_input.0"]),
        ("translation", {"network": "reencoder"}, WORDS),
        ("translation", {"network": "attention"}, WORDS),
        ("images", {}, ["projection.linear.weight", "relu.weight", "scores.weight"]),
    ],
)
def test_matrices_that_read_or_write_data_are_adams(
    experiment: str, options: dict[str, Any], adams: list[str]
) -> None:
    record = EXPERIMENTS[experiment]
    problem = record.make_problem(replace(record.presets["smoke"], **options))
    network = problem.network()
    optimizer = Muon(network, adam_parameters=problem.adam_parameters)
    matrices = {id(p) for p in optimizer.param_groups[0]["params"]}
    found = [
        name
        for name, p in network.named_parameters()
        if p.dim() > 1 and id(p) not in matrices and "bias" not in name
    ]
    assert sorted(found) == sorted(adams)


def test_vectors_are_adams_also_with_an_axis_of_positions() -> None:
    network = GridLSTM([Dim("x", "peephole", size=3, tied=False)], 4)
    muons, adams = (group["params"] for group in Muon(network).param_groups)
    assert [p.shape for p in muons] == [(3, 16, 4)]
    assert [p.shape for p in adams] == [(3, 16), (3, 12)]
    network = GridLSTM([Dim("x", size=3, tied=False)], 4, layer_norm=True)
    muons, adams = (group["params"] for group in Muon(network).param_groups)
    assert [p.shape for p in muons] == [(3, 16, 4)]
    assert sorted(p.shape for p in adams) == [(3, 4), (3, 4), (3, 16), (3, 16)]


def test_momentum_is_a_setting() -> None:
    settings = Training(optimizer="muon", momentum=0.8)
    optimizer = make_optimizer(settings, nn.Linear(3, 3))
    assert {group["momentum"] for group in optimizer.param_groups} == {0.8}
    for wrong in (1.0, -0.1):
        with pytest.raises(ValueError, match="momentum: expected at least 0 and below 1, got"):
            Training(momentum=wrong)
