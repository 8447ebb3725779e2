"""Stacks of grids whose layers travel in different directions."""

import pytest
import torch

from gridlstm import Dim, GridLSTM, GridStack, State

FLOAT64 = {"rtol": 1e-9, "atol": 1e-11}


def layer(down: bool = False, left: bool = False, size: int = 1) -> GridLSTM:
    dims = [Dim("row", reverse=down), Dim("column", reverse=left), Dim("depth", size=size)]
    return GridLSTM(dims, 4, dtype=torch.float64)


def image(batch: int = 2) -> State:
    return State(*torch.randn(2, batch, 3, 5, 4, dtype=torch.float64))


def test_tied_layers_in_one_direction_are_one_deeper_grid() -> None:
    grid, deep, x = layer(), layer(size=3), image()
    deep.load_state_dict(grid.state_dict())
    stacked = GridStack([grid] * 3, "depth")
    assert sum(1 for _ in stacked.parameters()) == sum(1 for _ in grid.parameters())
    want, out = deep({"depth": x}), stacked([{"depth": x}])
    torch.testing.assert_close(out[-1]["depth"], want["depth"], **FLOAT64)
    for k in range(3):
        torch.testing.assert_close(
            out[k]["row"].hidden[:, :, 0], want["row"].hidden[:, :, k], **FLOAT64
        )


def test_a_layer_in_the_other_direction_is_the_flipped_layer() -> None:
    first, second, x = layer(), layer(down=True, left=True), image()
    forwards = layer()
    forwards.load_state_dict(second.state_dict())
    middle = first({"depth": x})["depth"]
    want = forwards({"depth": middle.map(lambda t: t.flip(1, 2))})["depth"].map(lambda t: t.flip(1, 2))
    out = GridStack([first, second], "depth")([{"depth": x}])
    torch.testing.assert_close(out[-1]["depth"], want, **FLOAT64)


def test_each_layer_has_its_own_sides_and_continues() -> None:
    """A stack cut along its rows: what leaves each layer enters it again."""
    stack = GridStack([layer(), layer(left=True)], "depth")
    x = image()
    sides = [{"column": State(torch.randn(2, 3, 1, 4, dtype=torch.float64))} for _ in range(2)]
    whole = stack([{"depth": x, **sides[0]}, sides[1]])
    columns = [side["column"] for side in sides]
    upper = stack(
        [
            {"depth": x.map(lambda t: t[:, :2]), "column": columns[0].map(lambda t: t[:, :2])},
            {"column": columns[1].map(lambda t: t[:, :2])},
        ]
    )
    lower = stack(
        [
            {
                "depth": x.map(lambda t: t[:, 2:]),
                "column": columns[0].map(lambda t: t[:, 2:]),
                "row": upper[0]["row"],
            },
            {"column": columns[1].map(lambda t: t[:, 2:]), "row": upper[1]["row"]},
        ]
    )
    joint = torch.cat([upper[-1]["depth"].hidden, lower[-1]["depth"].hidden], 1)
    torch.testing.assert_close(joint, whole[-1]["depth"].hidden, **FLOAT64)


def test_padding_is_passed_over_in_both_directions() -> None:
    stack, x = GridStack([layer(), layer(True, True)], "depth"), image()
    lengths = {"row": torch.tensor([2, 3]), "column": torch.tensor([4, 1])}
    out = stack([{"depth": x}], lengths=lengths)[-1]["depth"]
    for sample in range(2):
        rows, columns = (int(lengths[name][sample]) for name in ("row", "column"))
        cut = x.map(lambda t, s=sample, r=rows, c=columns: t[s : s + 1, :r, :c])
        alone = stack([{"depth": cut}])[-1]["depth"]
        torch.testing.assert_close(out.hidden[sample, :rows, :columns], alone.hidden[0], **FLOAT64)


def test_bad_stacks() -> None:
    with pytest.raises(ValueError, match=r"^grids: expected at least one, got none$"):
        GridStack([], "depth")
    with pytest.raises(ValueError, match=r'^along: expected one of row, column, depth, got "time"$'):
        GridStack([layer()], "time")
    with pytest.raises(
        ValueError, match=r"expected dimensions \['row', 'column', 'depth'\] in every layer"
    ):
        GridStack([layer(), GridLSTM(["time"], 4)], "depth")
    wide = GridLSTM(["row", "column", Dim("depth", size=1, hidden_size=7)], 4)
    with pytest.raises(ValueError, match=r'"depth" of layer 0 does not fit that of layer 1'):
        GridStack([layer(), wide], "depth")


def test_stacks_of_the_wrong_type() -> None:
    with pytest.raises(TypeError, match=r"^grids: expected a list of GridLSTM, got GridLSTM$"):
        GridStack(layer(), "depth")
    with pytest.raises(TypeError, match=r"^grids: expected a GridLSTM as layer 1, got Linear$"):
        GridStack([layer(), torch.nn.Linear(2, 2)], "depth")
    with pytest.raises(
        TypeError, match=r"^sides: expected a mapping from names to State for layer 0, got State$"
    ):
        GridStack([layer()], "depth")([image()])


def test_bad_sides() -> None:
    stack, x = GridStack([layer(), layer()], "depth"), image()
    with pytest.raises(
        TypeError, match=r"^sides: expected a list with the sides of each layer, got dict$"
    ):
        stack({"depth": x})
    with pytest.raises(ValueError, match=r"^sides: expected at most 2 layers, got 3$"):
        stack([{"depth": x}, {}, {}])
    with pytest.raises(
        ValueError, match=r'^sides: layer 1 receives "depth" from layer 0, got a second one$'
    ):
        stack([{"depth": x}, {"depth": x}])
