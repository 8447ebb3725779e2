"""Signals that ask a run to stop. No PyTorch here."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

__all__ = ["StopRequest", "stop_on_signals"]

HANGUP = getattr(signal, "SIGHUP", None)  # Windows has none.


class StopRequest:
    """Whether the run has been asked to stop, and by which signal."""

    signal: int | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Records a signal. A second SIGINT or SIGTERM ends the process at once."""
        self.signal = number
        if number != HANGUP:  # A terminal that is closed may send SIGHUP twice.
            signal.signal(number, signal.SIG_DFL)


@contextmanager
def stop_on_signals() -> Iterator[StopRequest]:
    """Within the context, SIGINT, SIGTERM and SIGHUP request a stop after the current update.

    SIGHUP stays ignored if it is ignored already, as under ``nohup``.
    """
    stop, numbers = StopRequest(), [signal.SIGINT, signal.SIGTERM]
    if HANGUP is not None and signal.getsignal(HANGUP) != signal.SIG_IGN:
        numbers.append(HANGUP)
    before = [signal.signal(number, stop) for number in numbers]
    try:
        yield stop
    finally:
        for number, handler in zip(numbers, before, strict=True):
            signal.signal(number, handler)
