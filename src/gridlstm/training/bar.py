"""The line on a terminal that tells how far a run is."""

import time

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import Segment

from gridlstm.training.problem import Measures
from gridlstm.training.settings import Training

__all__ = ["Bar"]

NARROW, WIDE = 12, 40
"""Columns of the bar itself: figures make room for the first, and the second is all it takes."""
KEPT = ("count", "left", "elapsed", "measured", "rate", "loss", "also", "name")
"""Figures beside the bar, the most important first: a narrow terminal has only the first two."""
FAR = 60 * 60
"""Seconds: a problem that can be solved will hardly take all of its samples if they last longer."""


class Bar:
    """A progress bar, the samples so far, the time left, and as many figures as there is room for.

    The bar of a run that ends when its problem is solved shows how near that is. Such a run may end at
    any time, so the time left is a bound: that of the minutes, or of the samples if they end soon.
    Any other bar shows which share of the samples or the minutes is used up, whichever ends the run.

    Args:
        name: of the run.
        done: the samples before this session.
        settings: when the run ends at the latest.
        goal: the measure that is 1 when the problem is solved; ``None`` if there is none.
        console: where to show it.
    """

    def __init__(
        self, name: str, done: int, settings: Training, goal: str | None, console: Console
    ) -> None:
        self._name = name
        self._first = self._samples = done
        self._settings = settings
        self._goal = goal
        self._loss: float | None = None
        self._measures: Measures = {}
        self._started = time.monotonic()
        self._ended = False
        self._live = Live(self, console=console, refresh_per_second=4)

    def start(self) -> None:
        """Shows the line, and keeps it up to date."""
        self._started = time.monotonic()
        self._live.start()

    def stop(self) -> None:
        """Leaves the line as it is now."""
        self._ended = True
        self._live.stop()

    def stepped(self, samples: int, loss: float) -> None:
        """After an update."""
        self._loss = loss if self._loss is None else 0.95 * self._loss + 0.05 * loss
        self._samples = samples

    def evaluated(self, measures: Measures) -> None:
        """After an evaluation."""
        self._measures = measures

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """One line, however narrow the terminal is."""
        elapsed, width = time.monotonic() - self._started, options.max_width
        figures = self._figures(elapsed)
        shown = {name: figures[name] for name in KEPT if figures.get(name)}
        while len(shown) > 2 and NARROW + sum(2 + len(text) for text in shown.values()) > width:
            shown.popitem()
        name = f"{shown.pop('name')}  " if "name" in shown else ""
        rest = "".join(f"  {shown[name]}" for name in figures if name in shown)
        columns = max(1, min(WIDE, width - len(name) - len(rest)))
        bar = ProgressBar(1.0, self._share(elapsed), columns)
        yield Segment(name)
        drawn = list(console.render(bar, options.update(width=columns)))
        yield from Segment.adjust_line_length(drawn, columns)  # Without colours only a part is drawn.
        yield Segment(rest)

    def _left(self, elapsed: float) -> float | None:
        """Seconds to the end of the samples or the minutes; ``None`` if there is nothing to tell."""
        left = []
        if self._samples > self._first:
            each = elapsed / (self._samples - self._first)
            samples = each * (self._settings.samples - self._samples)
            if self._goal is None or samples < FAR:
                left.append(samples)
        if self._settings.minutes is not None:
            left.append(60 * self._settings.minutes - elapsed)
        return max(0.0, min(left)) if left else None

    def _share(self, elapsed: float) -> float:
        """How much of the bar is full."""
        if self._goal is not None:
            return self._measures.get(self._goal, 0.0)
        samples = self._samples / self._settings.samples
        if self._settings.minutes is None:
            return samples
        return max(samples, elapsed / (60 * self._settings.minutes))

    def _figures(self, elapsed: float) -> dict[str, str]:
        """What there is to tell, in the order in which it is shown."""
        measured = [f"{name} {value:.4f}" for name, value in self._measures.items()]
        figures = {
            "name": self._name,
            "count": f"{self._samples:,} samples",
            "measured": measured[0] if measured else "",
            "also": "  ".join(measured[1:]),
            "loss": "" if self._loss is None else f"loss {self._loss:.4f}",
            "rate": f"{(self._samples - self._first) / elapsed:.0f}/s" if elapsed > 1 else "",
            "elapsed": _clock(elapsed),
        }
        if self._goal is None:
            figures["count"] = f"{self._samples:,}/{self._settings.samples:,}"
        left = self._left(elapsed)
        if left is not None and not self._ended:
            figures["left"] = f"{'max ' if self._goal else ''}{_clock(left)} left"
        return figures


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
