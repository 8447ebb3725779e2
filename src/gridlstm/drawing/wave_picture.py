"""The moving picture of the wavefront: blocks that run at once light up together."""

from collections.abc import Mapping, Sequence

from gridlstm.drawing.canvas import Canvas, Drawing
from gridlstm.drawing.grid_picture import BLOCK, draw_blocks, lay_out
from gridlstm.drawing.shown import ShownDim, call_sizes
from gridlstm.geometry import make_plan, position_number

__all__ = ["draw_wave"]

_SECONDS = 0.8
"""How long a step is shown."""
_PAUSE = 2
"""Steps of rest before it starts anew."""


def draw_wave(dims: Sequence[ShownDim], sizes: Mapping[str, int]) -> Drawing:
    """Draws the steps of the wavefront engine over a grid of two dimensions, as an animated SVG.

    The steps are those of the engine's plan. Readers who prefer no motion see the grid at rest, with
    the number of its step in each block.

    Raises:
        TypeError: if a size is not an integer.
        ValueError: if there are not two dimensions, or a size is missing or wrong.
    """
    if len(dims) != 2:
        raise ValueError(f"dims: expected two dimensions, got {len(dims)}")
    known = call_sizes(dims, sizes)
    if None in known:
        missing = ", ".join(dim.name for dim, size in zip(dims, known, strict=True) if size is None)
        raise ValueError(f"sizes: expected a size for {missing}, got none")
    counts = tuple(size or 0 for size in known)
    plan = make_plan(counts, tuple(dim.reverse for dim in dims), tuple(not dim.tied for dim in dims))
    canvas = Canvas()
    draw_blocks(canvas, dims, known, (0, 1), most=max(counts))
    layout = lay_out(known, max(counts))
    centres = {position_number(p, counts): layout.centre(p) for p in layout.blocks()}
    title = f"The wavefront: {plan.blocks} blocks in {len(plan.steps)} steps"
    canvas.text((canvas.left, canvas.top - 18), title, "title")
    below = canvas.bottom + 26
    for k, step in enumerate(plan.steps):
        lit = plan.position[step.start : step.stop]
        for x, y in (centres[int(number)] for number in lit):
            corner = (x - BLOCK / 2, y - BLOCK / 2)
            canvas.box(corner, (BLOCK, BLOCK), name=f"gl-lit gl-step{k}")
            canvas.text((x, y + 4), str(k + 1), "small", "c")
        words = f"step {k + 1}: one matrix product for {len(lit)} block{'s' * (len(lit) != 1)}"
        canvas.text((canvas.left, below), words, name=f"gl-count gl-at{k}")
    canvas.style = _animation(len(plan.steps))
    return canvas.finish(f"{title}. All blocks of an anti-diagonal are computed at once.")


def _animation(steps: int) -> str:
    """One rhythm per step: a block is dark, lit in its step, dim until the end; its count likewise."""
    total = steps + _PAUSE
    rules = [
        ".gl .gl-lit{fill:#f59e0b;stroke:#b45309;opacity:0}.gl .gl-count{opacity:0}",
        f".gl .gl-at{steps - 1}{{opacity:1}}",
    ]
    moving = []
    for k in range(steps):
        start, stop = 100 * k / total, 100 * (k + 1) / total
        lit = [(0, 0.0), (start, 0), (start + 2, 1), (stop, 1), (stop + 50 / total, 0.35), (98, 0.35)]
        end = 98.0 if k == steps - 1 else stop
        count = [(0, 0.0), (start, 0), (start + 0.1, 1), (end, 1), (end + 0.1, 0)]
        for name, frames in ((f"gl-step{k}", lit), (f"gl-at{k}", count)):
            shown = "".join(f"{at:.1f}%{{opacity:{opacity:g}}}" for at, opacity in frames)
            rules.append(f"@keyframes {name}{{{shown}100%{{opacity:0}}}}")
            moving.append(f".gl .{name}{{animation:{name} {total * _SECONDS:.1f}s linear infinite}}")
    return f"{''.join(rules)}@media (prefers-reduced-motion:no-preference){{{''.join(moving)}}}"
