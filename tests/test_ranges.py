"""Numbers that no option can be: not finite, out of range, or not numbers at all."""

import math
from dataclasses import fields, replace
from typing import Any

import pytest

from gridlstm import DeepGridLSTM, GridLSTM, Highway, MultidimensionalLSTM, Reencoder, StackedLSTM
from gridlstm.experiments.registry import EXPERIMENTS
from gridlstm.ranges import check_number
from gridlstm.training.settings import Training

NOT_FINITE = [math.nan, math.inf, -math.inf]


def float_fields(kind: type) -> list[str]:
    return [f.name for f in fields(kind) if f.type in (float, float | None)]


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize("name", float_fields(Training))
def test_settings_of_training_are_finite(name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"^{name}: expected a finite number, got {value}$"):
        Training(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize(
    ("experiment", "name"),
    [(key, name) for key in EXPERIMENTS for name in float_fields(EXPERIMENTS[key].options)],
)
def test_options_of_experiments_are_finite(experiment: str, name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"^{name}: expected a finite number, got {value}$"):
        replace(EXPERIMENTS[experiment].presets["paper"], **{name: value})


def test_the_options_that_are_checked_are_there() -> None:
    """Annotations as strings would leave nothing to check above."""
    assert {"rate", "clip", "minutes", "momentum", "checkpoint_minutes"} <= set(float_fields(Training))
    assert all("forget_bias" in float_fields(experiment.options) for experiment in EXPERIMENTS.values())


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize(
    ("make", "name"),
    [
        (lambda **o: GridLSTM(["time"], 4, **o), "forget_bias"),
        (lambda **o: GridLSTM(["time"], 4, **o), "dropout"),
        (lambda **o: DeepGridLSTM(3, 4, 2, **o), "forget_bias"),
        (lambda **o: StackedLSTM(3, 4, **o), "forget_bias"),
        (lambda **o: MultidimensionalLSTM(3, 4, 2, **o), "forget_bias"),
        (lambda **o: Reencoder(5, 5, 4, **o), "side_dropout"),
        (lambda **o: Highway(3, 4, 2, **o), "transform_bias"),
    ],
)
def test_arguments_of_networks_are_finite(make: Any, name: str, value: float) -> None:
    with pytest.raises(ValueError, match=f"^{name}: expected a finite number, got {value}$"):
        make(**{name: value})


@pytest.mark.parametrize(
    ("value", "bounds", "message"),
    [
        (0, {"least": 1}, "expected at least 1, got 0"),
        (0.0, {"above": 0, "optional": True}, "expected more than 0 or None, got 0.0"),
        (3, {"least": 0, "most": 2}, "expected at least 0 and at most 2, got 3"),
        (1, {"least": 0, "below": 1}, "expected at least 0 and below 1, got 1"),
    ],
)
def test_bounds(value: float, bounds: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^x: {message}$"):
        check_number("x", value, **bounds)


@pytest.mark.parametrize("value", ["1", None, True, [1]])
def test_what_is_not_a_number(value: Any) -> None:
    with pytest.raises(TypeError, match=r"^x: expected a number, got "):
        check_number("x", value, least=0)


def test_what_is_within_bounds() -> None:
    check_number("x", 10**400, least=1)
    check_number("x", None, above=0, optional=True)
    check_number("x", -1.5)
