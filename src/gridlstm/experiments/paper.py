"""The results of the paper, each with its place there. The only file that has them."""

from typing import NamedTuple

__all__ = ["PAPER", "PaperResult", "paper_result", "paper_results"]


class PaperResult(NamedTuple):
    """A result of the paper.

    Attributes:
        place: where it is stated.
        experiment: which one.
        network: as the paper calls it.
        setting: layers and vectors, as ``18 x 400``.
        value: what is reported, by measure.
        ours: the option ``network`` of the same network here, if there is one.
        size: the size of the task, where it has one.
    """

    place: str
    experiment: str
    network: str
    setting: str
    value: dict[str, str]
    ours: str = ""
    size: int | None = None


PAPER = (
    PaperResult(
        "Figure 4", "addition", "Tied 2-LSTM", "18 x 400",
        {"accuracy": "> 99 %", "samples": "< 550 K"}, "tied-grid", 15,
    ),
    PaperResult(
        "Figure 4", "addition", "Untied 2-LSTM", "5 x 400",
        {"accuracy": "67 %", "samples": "5 M"}, "untied-grid", 15,
    ),
    PaperResult(
        "Figure 4", "addition", "Stacked LSTM", "1 x 400",
        {"accuracy": "51 %", "samples": "5 M"}, "untied-stacked", 15,
    ),
    PaperResult(
        "Section 4.2", "memorization", "Tied 2-LSTM", "43 x 100",
        {"accuracy": "solved", "samples": "< 150 K"}, "tied-grid", 20,
    ),
    PaperResult(
        "Section 4.2", "memorization", "Tied Stacked LSTM", "more than 16 x 100",
        {"accuracy": "< 50 %", "samples": "5 M"}, "tied-stacked", 20,
    ),
    PaperResult(
        "Figure 6", "characters", "Tied 2-LSTM", "6 x 1000",
        {"bits": "1.47", "parameters": "16.8 M", "characters": "20 epochs of 90 M"}, "tied-grid",
    ),
    PaperResult("Figure 6", "characters", "Stacked LSTM", "", {"bits": "1.67", "parameters": "27 M"}),
    PaperResult("Figure 6", "characters", "MRNN", "", {"bits": "1.60", "parameters": "4.9 M"}),
    PaperResult("Figure 6", "characters", "GFRNN", "", {"bits": "1.58", "parameters": "20 M"}),
    PaperResult(
        "Figure 8", "translation", "3-LSTM, 7 models", "2 x 450",
        {"bleu 1": "42.4", "bleu all": "60.2 (15)"}, "reencoder",
    ),
    PaperResult(
        "Figure 8", "translation", "CDEC, phrase-based", "",
        {"bleu 1": "41", "bleu all": "58.9 (15)"},
    ),
    PaperResult("Figure 8", "translation", "DGLSTM with attention", "", {"bleu 1": "34.5"}),
    PaperResult(
        "Figure 10", "parity", "Tied 1-LSTM", "148 x 500", {"accuracy": "solved"}, "tied-grid", 250
    ),
    PaperResult(
        "Figure 10", "parity", "Tied 1-LSTM", "72 x 1500", {"accuracy": "solved"}, "tied-grid", 220
    ),
    PaperResult(
        "Figure 10", "parity", "Tied Tanh FFN", "5 x 1500",
        {"accuracy": "solved"}, "tied-tanh", 30,
    ),
    PaperResult(
        "Figure 10", "parity", "Tied ReLU FFN", "4 x 1500",
        {"accuracy": "solved"}, "tied-relu", 30,
    ),
    PaperResult(
        "Figure 12", "images", "Untied 3-LSTM", "4 x 100, 2, 4096", {"error": "0.32 %"}, "untied-grid"
    ),
    PaperResult(
        "Figure 12", "images", "Untied 3-LSTM with ReLU", "4 x 100, 3, 2048",
        {"error": "0.36 %"}, "untied-relu-grid",
    ),
)  # fmt: skip


def paper_results(experiment: str) -> list[PaperResult]:
    """All results of an experiment."""
    return [result for result in PAPER if result.experiment == experiment]


def paper_result(experiment: str, network: str, size: int | None = None) -> PaperResult | None:
    """The result for a network here, at this size of the task."""
    results = (r for r in paper_results(experiment) if (r.ours, r.size) == (network, size))
    return next(results, None)
