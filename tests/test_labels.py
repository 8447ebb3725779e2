"""What figures call networks: legends, markers and the headline."""

import html
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest
from matplotlib.figure import Figure

from gridlstm.experiments.algorithmic.depth import draw_depth
from gridlstm.experiments.algorithmic.markers import marker_of
from gridlstm.experiments.curve import Curve, draw_curves
from gridlstm.experiments.parity.solutions import draw_solutions
from gridlstm.experiments.registry import EXPERIMENTS
from gridlstm.experiments.run_labels import label_runs

from .figure_text import figure_text

TOOLS = Path(__file__).parent.parent / "tools"


def run(name: str, experiment: str = "memorization", seed: int = 0, **options: Any) -> Curve:
    record = EXPERIMENTS[experiment]
    training = {k: options.pop(k) for k in ("rate", "samples", "schedule") if k in options}
    preset = record.presets["laptop"]
    chosen = replace(preset, **options, training=replace(preset.training, seed=seed, **training))
    return Curve(name, record, chosen, [1000, 2000], [0.5, 1.0])


def legend(figure: Figure) -> list[str]:
    return [text.get_text() for text in figure.legends[0].get_texts()]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_network_has_a_title(name: str) -> None:
    record = EXPERIMENTS[name]
    networks = get_args(get_type_hints(record.options)["network"])
    assert set(record.networks) == set(networks)
    assert len(set(record.networks.values())) == len(networks)


def test_a_label_says_what_a_network_is() -> None:
    runs = [run("a", layers=16), run("b", network="tied-stacked", layers=16), run("c", layers=1)]
    assert label_runs(runs) == [
        "tied 2-LSTM, 16 layers",
        "tied Stacked LSTM, 16 layers",
        "tied 2-LSTM, 1 layer",
    ]


def test_networks_that_are_alike_are_told_apart_by_options_seed_and_number() -> None:
    assert label_runs([run("a", rate=0.01), run("b", rate=0.02)]) == [
        "tied 2-LSTM, 16 layers, rate 0.01",
        "tied 2-LSTM, 16 layers, rate 0.02",
    ]
    assert label_runs([run("a", hidden=64), run("b", hidden=64, seed=1), run("c", hidden=128)]) == [
        "tied 2-LSTM, 16 layers, d 64, seed 0",
        "tied 2-LSTM, 16 layers, d 64, seed 1",
        "tied 2-LSTM, 16 layers, d 128",
    ]
    again = label_runs([run("a"), run("b")])
    assert again == [f"tied 2-LSTM, 16 layers, seed 0, run {number}" for number in (1, 2)]


def test_the_number_of_samples_counts_only_if_the_schedule_depends_on_it() -> None:
    constant = [run("a", samples=30, schedule="constant"), run("b", samples=60, schedule="constant")]
    assert not any("samples" in label for label in label_runs(constant))
    linear = [run("a", samples=30000, schedule="linear"), run("b", samples=60, schedule="linear")]
    assert label_runs(linear)[0].endswith("samples 30,000")


def test_curves_are_labelled_and_differ_in_style() -> None:
    curves = [run(f"r{k}", layers=k + 1) for k in range(12)]
    figure = draw_curves(curves)
    assert legend(figure) == label_runs(curves)
    assert "r3" not in "".join(legend(figure))
    styles = {(line.get_color(), line.get_linestyle()) for line in figure.axes[0].get_lines()}
    assert len(styles) == 12
    assert figure.axes[0].get_title() == "memorization, 20 symbols"


def test_markers_are_not_shared() -> None:
    networks = {**EXPERIMENTS["memorization"].networks, **EXPERIMENTS["parity"].networks}
    markers = [marker_of(network) for network in networks]
    assert len({marker.shape for marker in markers}) == len(networks)
    assert len({marker.colour for marker in markers}) == len(networks)


def test_depth_has_whole_layers_and_no_marker_above_another() -> None:
    networks = ("tied-grid", "untied-grid", "tied-stacked", "untied-stacked")
    curves = [run("x", network=network, layers=layers) for network in networks for layers in (2, 7)]
    figure = draw_depth(curves, [0.99, 2.0])
    assert legend(figure) == ["tied 2-LSTM", "tied Stacked LSTM", "untied 2-LSTM", "Stacked LSTM"]
    for axes in figure.axes:
        assert list(axes.get_xticks()) == [2, 7]
        places = [xy for line in axes.get_lines() for xy in zip(*line.get_data(), strict=True)]
        assert len(set(places)) == len(places) == 8


def test_solutions_say_how_networks_start() -> None:
    runs = [
        run("a", "parity", network=network, start=start)
        for network in ("tied-grid", "tied-tanh")
        for start in ("random", "signs")
    ]
    figure = draw_solutions(runs)
    assert [axes.get_title() for axes in figure.axes] == [
        "start: weights of one size, random signs",
        "start: weights of random size",
    ]
    assert legend(figure) == ["tied 1-LSTM", "tied tanh network"]


def test_the_headline_figure_and_table_agree(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(str(TOOLS))
    headline = __import__("headline")
    lines = headline.headlines()
    drawn = {text.get_text() for axes in headline.draw_headline().axes for text in axes.texts}
    table = headline.headline_table()
    assert {line.kind.title for line in lines} == {kind.title for kind in headline.KINDS.values()}
    for line in lines:
        assert {line.ours, line.paper_value} <= drawn
        assert f"| {line.ours} ({line.setting}) | {line.ended} |" in table
    sys.modules.pop("headline")
    stored = figure_text(TOOLS.parent / "results" / "headline")
    assert {line.ours for line in lines} <= {html.unescape(text) for text in stored}, "run make readme"
