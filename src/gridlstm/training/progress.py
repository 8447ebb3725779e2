"""The progress line of a run on a terminal."""

import time

from rich.console import Console, ConsoleOptions, RenderResult
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.segment import Segment

from gridlstm.training.problem import Measures
from gridlstm.training.settings import Training

__all__ = ["ProgressLine"]

MIN_BAR, MAX_BAR = 12, 40
"""Columns of the bar itself."""
BY_IMPORTANCE = ("count", "left", "elapsed", "measure", "rate", "loss", "more measures", "name")
"""Fields beside the bar, the most important first: a narrow terminal shows only the first two."""
SOON = 60 * 60
"""Seconds. The time left to the last sample of a problem with a goal is shown only if below this:
the problem is usually solved long before."""


class ProgressLine:
    """A progress bar, the samples so far, the time left, and as many other fields as fit.

    For a problem with a goal the bar shows the goal's measure. Such a run may end at any time, so the
    time left is an upper bound. Otherwise the bar shows the share of samples or minutes used,
    whichever ends the run.

    Args:
        name: the name of the run.
        done: the samples before this session.
        settings: they limit samples and minutes.
        goal: the measure that is 1 when the problem is solved; ``None`` if there is none.
        console: the terminal.
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
        """Shows the line and keeps it up to date."""
        self._started = time.monotonic()
        self._live.start()

    def stop(self) -> None:
        """Stops updating the line."""
        self._ended = True
        self._live.stop()

    def stepped(self, samples: int, loss: float) -> None:
        """Is called after each update."""
        self._loss = loss if self._loss is None else 0.95 * self._loss + 0.05 * loss
        self._samples = samples

    def evaluated(self, measures: Measures) -> None:
        """Is called after each evaluation."""
        self._measures = measures

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Renders one line, however narrow the terminal is."""
        elapsed, width = time.monotonic() - self._started, options.max_width
        fields = self._fields(elapsed)
        fitting = {name: fields[name] for name in BY_IMPORTANCE if fields.get(name)}
        while len(fitting) > 2 and MIN_BAR + sum(2 + len(text) for text in fitting.values()) > width:
            fitting.popitem()
        before = f"{fitting.pop('name')}  " if "name" in fitting else ""
        after = "".join(f"  {fitting[name]}" for name in fields if name in fitting)
        columns = max(1, min(MAX_BAR, width - len(before) - len(after)))
        bar = ProgressBar(1.0, self._share(elapsed), columns)
        yield Segment(before)
        drawn = list(console.render(bar, options.update(width=columns)))
        yield from Segment.adjust_line_length(drawn, columns)  # Without colours only a part is drawn.
        yield Segment(after)

    def _left(self, elapsed: float) -> float | None:
        """Seconds until samples or minutes are used up; ``None`` if unknown."""
        left = []
        if self._samples > self._first:
            seconds_per_sample = elapsed / (self._samples - self._first)
            seconds = seconds_per_sample * (self._settings.samples - self._samples)
            if self._goal is None or seconds < SOON:
                left.append(seconds)
        if self._settings.minutes is not None:
            left.append(60 * self._settings.minutes - elapsed)
        return max(0.0, min(left)) if left else None

    def _share(self, elapsed: float) -> float:
        """The share of the bar that is filled."""
        if self._goal is not None:
            return self._measures.get(self._goal, 0.0)
        samples = self._samples / self._settings.samples
        if self._settings.minutes is None:
            return samples
        return max(samples, elapsed / (60 * self._settings.minutes))

    def _fields(self, elapsed: float) -> dict[str, str]:
        """The text of each field, in the order of the line."""
        measures = [f"{name} {value:.4f}" for name, value in self._measures.items()]
        fields = {
            "name": self._name,
            "count": f"{self._samples:,} samples",
            "measure": measures[0] if measures else "",
            "more measures": "  ".join(measures[1:]),
            "loss": "" if self._loss is None else f"loss {self._loss:.4f}",
            "rate": f"{(self._samples - self._first) / elapsed:.0f}/s" if elapsed > 1 else "",
            "elapsed": _clock(elapsed),
        }
        if self._goal is None:
            fields["count"] = f"{self._samples:,}/{self._settings.samples:,}"
        left = self._left(elapsed)
        if left is not None and not self._ended:
            fields["left"] = f"{'max ' if self._goal else ''}{_clock(left)} left"
        return fields


def _clock(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"
