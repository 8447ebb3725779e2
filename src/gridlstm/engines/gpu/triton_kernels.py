"""The work of a step between its matrix products, in Triton; read ``torch_backend.py`` first.

A kernel works on the columns of one dimension, each of its programs on a tile of rows and columns.
Letters are those of ``native/kernel.c``: r a row of the step, which has one per block and sample, j a
column, d the length of a vector.

Pointers are to the dimension's first column in a buffer (``h m gates x`` and their gradients), in its
sides (``in_ out_``, ``[faces, batch, d]``), in the vectors of all blocks (``blocks_``, ``[blocks,
batch, d]``) and in what dropout keeps (``kept``, ``[blocks, batch, H]``; ``scale``, ``[blocks, H]``).
``table`` has five numbers for each block. The rows of a buffer are a ``pitch`` apart. Those of the step
begin at a ``first``, those of the next step at ``ahead``; among the rows of all blocks, the step begins
at ``start``. Where a ``has_`` is zero, the call lacks something, and the pointer to it is not used.

No kernel is specialised on sizes, options or alignment: it is compiled once for each cell and each pair
of dtypes.
"""

import inspect

import triton
import triton.language as tl

from gridlstm.engines.gpu.triton_cells import (
    gru,
    gru_backward,
    load,
    lstm,
    lstm_backward,
    transfer,
    transfer_backward,
)

__all__ = ["COLUMNS", "ROWS", "backward", "enter", "finish", "forward", "read"]

ROWS, COLUMNS = 8, 64
"""The size of a tile."""

# The numbers of a block in ``table``.
SUCCESSOR, FACE, EXIT = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)
ENTERS, SET, TABLE = tl.constexpr(3), tl.constexpr(4), tl.constexpr(5)


def _kernel(function):
    """Compiles a kernel once for each choice of its constants: what is not annotated may vary."""
    parameters = inspect.signature(function).parameters.values()
    varying = [p.name for p in parameters if p.annotation is inspect.Parameter.empty]
    return triton.jit(function, do_not_specialize=varying)


@triton.jit
def tile(rows, d, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Rows, columns, and the part of the tile that exists. Rows beyond it stand for the last one."""
    r = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)).to(tl.int64)[:, None]
    j = (tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS))[None, :]
    inside = (r < rows) & (j < d)
    return tl.minimum(r, rows - 1), j, inside


@triton.jit
def look_up(table, row, batch, WHAT: tl.constexpr):
    """A number of each row's block."""
    return tl.load(table + row // batch * TABLE + WHAT).to(tl.int64)


@triton.jit
def is_real(mask, row, has_mask):
    """Which rows are not masked."""
    return tl.load(mask + row, mask=(has_mask != 0) & (row >= 0), other=1) != 0


@triton.jit
def beyond(table, row, batch, ahead, d):
    """Where vectors go: whether to the next step, rows there, and places in the outgoing side."""
    successor = look_up(table, row, batch, SUCCESSOR)
    b = row % batch
    return (
        successor >= 0,
        ahead + successor * batch + b,
        (look_up(table, row, batch, EXIT) * batch + b) * d,
    )


@triton.jit
def entrance(table, row, batch, d):
    """Where vectors come from: whether from the incoming side, and places there."""
    face = look_up(table, row, batch, FACE)
    return look_up(table, row, batch, ENTERS) != 0, (face * batch + row % batch) * d


@triton.jit
def drop(vectors, kept, scale, row, j, batch, H, inside, has_kept):
    """Dropout of the vectors that a phase reads, or of their gradients."""
    inside &= has_kept != 0
    keep = tl.load(kept + row * H + j, mask=inside, other=1).to(vectors.dtype)
    return vectors * (keep * tl.load(scale + row // batch * H + j, mask=inside, other=1))


@triton.jit
def gather(goes, next_grad, out, blocks, inside, has_out, has_blocks):
    """The gradient of vectors that left blocks: from where they went, and from the trace."""
    grad = tl.load(next_grad, mask=inside & goes, other=0)
    grad += tl.load(out, mask=inside & (goes == 0) & (has_out != 0), other=0)
    return grad + tl.load(blocks, mask=inside & (has_blocks != 0), other=0)


@_kernel
def enter(
    table, in_h, in_m, h, m, start, rows, first, batch, d, pitch_h, pitch_m, has_memory,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Copies the incoming side into the rows of a step."""
    r, j, inside = tile(rows, d, ROWS, COLUMNS)
    row = start + r
    enters, side = entrance(table, row, batch, d)
    inside &= enters
    side += j
    tl.store(h + (first + r) * pitch_h + j, tl.load(in_h + side, mask=inside), mask=inside)
    inside &= has_memory != 0
    tl.store(m + (first + r) * pitch_m + j, tl.load(in_m + side, mask=inside), mask=inside)


@_kernel
def read(
    kept, scale, h, x, start, rows, first, first_x, batch, d, H, pitch_h, has_kept,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Copies what a phase multiplies by its weights, after dropout."""
    r, j, inside = tile(rows, d, ROWS, COLUMNS)
    vectors = tl.load(h + (first + r) * pitch_h + j, mask=inside, other=0)
    vectors = drop(vectors, kept, scale, start + r, j, batch, H, inside, has_kept)
    tl.store(x + (first_x + r) * pitch_h + j, vectors, mask=inside)


@_kernel
def forward(
    table, mask, kept, scale, bias, h, m, gates, later, out_h, out_m, blocks_h, blocks_m,
    start, rows, first, first_gates, first_later, ahead, batch, d, H, G, pitch_h, pitch_m, pitch_g,
    has_mask, has_kept, has_later, has_out_h, has_out_m, has_blocks,
    CELL: tl.constexpr, STANDARD: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Runs the cells after the product, and writes new vectors where they are read ahead.

    ``later`` is what the next phase reads.
    """
    r, j, inside = tile(rows, d, ROWS, COLUMNS)
    row = start + r
    real = is_real(mask, row, has_mask)
    goes, there, outside = beyond(table, row, batch, ahead, d)
    gates += (first_gates + r) * pitch_g + j
    bias += look_up(table, row, batch, SET) * G + j
    old_h = tl.load(h + (first + r) * pitch_h + j, mask=inside, other=0)
    traced = inside & (has_blocks != 0)
    if CELL == "lstm":
        old_m = tl.load(m + (first + r) * pitch_m + j, mask=inside, other=0)
        new_h, new_m = lstm(gates, bias, d, old_m, inside, STANDARD)
        new_m = tl.where(real, new_m, old_m)
        tl.store(m + there * pitch_m + j, new_m, mask=inside & goes)
        tl.store(out_m + outside + j, new_m, mask=inside & (goes == 0) & (has_out_m != 0))
        tl.store(blocks_m + row * d + j, new_m, mask=traced)
    elif CELL == "gru":
        new_h = gru(gates, bias, d, old_h, inside)
    else:
        new_h = transfer(gates, bias, inside, CELL, old_h.dtype)
    new_h = tl.where(real, new_h, old_h)
    tl.store(h + there * pitch_h + j, new_h, mask=inside & goes)
    tl.store(out_h + outside + j, new_h, mask=inside & (goes == 0) & (has_out_h != 0))
    tl.store(blocks_h + row * d + j, new_h, mask=traced)
    inside &= has_later != 0
    read_later = drop(new_h, kept, scale, row, j, batch, H, inside, has_kept)
    tl.store(later + (first_later + r) * pitch_h + j, read_later, mask=inside)


@_kernel
def backward(
    table, mask, kept, scale, h, m, gates, later, grad_h, grad_m, in_m, out_h, out_m, blocks_h,
    blocks_m, start, rows, first, first_gates, first_later, first_grad, ahead, batch, d, H, pitch_h,
    pitch_m, pitch_g, has_mask, has_kept, has_later, has_out_h, has_out_m, has_blocks_h,
    has_blocks_m,
    CELL: tl.constexpr, STANDARD: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """The backward of :func:`forward`: from gradients of new vectors to those of preactivations.

    All pointers but ``h m gates`` are to gradients: ``later`` to those of what the next phase read.
    """
    r, j, inside = tile(rows, d, ROWS, COLUMNS)
    row = start + r
    real = is_real(mask, row, has_mask)
    goes, there, outside = beyond(table, row, batch, ahead, d)
    gates += (first_gates + r) * pitch_g + j
    grad = gather(
        goes, grad_h + there * pitch_h + j, out_h + outside + j, blocks_h + row * d + j,
        inside, has_out_h, has_blocks_h,
    )  # fmt: skip
    reads_later = inside & (has_later != 0)
    read_later = load(later + (first_later + r) * pitch_h + j, reads_later, grad.dtype)
    grad += drop(read_later, kept, scale, row, j, batch, H, reads_later, has_kept)
    if CELL == "lstm":
        old = tl.load(m + (first + r) * pitch_m + j, mask=inside, other=0)
        grad_new = gather(
            goes, grad_m + there * pitch_m + j, out_m + outside + j, blocks_m + row * d + j,
            inside, has_out_m, has_blocks_m,
        )  # fmt: skip
        grad_old = lstm_backward(gates, d, old, grad, grad_new, inside, real, STANDARD)
        grad_old = tl.where(real, grad_old, grad_new)
        tl.store(grad_m + (first_grad + r) * pitch_m + j, grad_old, mask=inside)
        enters, side = entrance(table, row, batch, d)
        tl.store(in_m + side + j, grad_old, mask=inside & enters)
    elif CELL == "gru":
        old = tl.load(h + (first + r) * pitch_h + j, mask=inside, other=0)
        grad_old = gru_backward(gates, d, old, grad, inside, real)
        tl.store(grad_h + (first_grad + r) * pitch_h + j, grad_old, mask=inside)
    else:
        transfer_backward(gates, grad, inside, real, CELL)


@_kernel
def finish(
    table, mask, kept_0, scale_0, kept_1, scale_1, grad_x_0, grad_x_1, grad_h, in_h, out_h, blocks_h,
    start, rows, first_grad, first_x, ahead, batch, d, H, pitch_h,
    has_mask, has_kept, has_part, phases, has_out_h, has_blocks_h,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """Completes the gradients of the incoming hidden vectors.

    Adds those of what ``phases`` phases have read to the part that is there already (``has_part``).
    """
    r, j, inside = tile(rows, d, ROWS, COLUMNS)
    row = start + r
    real = is_real(mask, row, has_mask)
    goes, there, outside = beyond(table, row, batch, ahead, d)
    own = (first_grad + r) * pitch_h + j
    grad = tl.load(grad_h + own, mask=inside & (has_part != 0), other=0)
    read_0, read_1 = inside & (phases > 0), inside & (phases > 1)
    grad_0 = load(grad_x_0 + (first_x + r) * pitch_h + j, read_0, grad.dtype)
    grad_1 = load(grad_x_1 + (first_x + r) * pitch_h + j, read_1, grad.dtype)
    grad += drop(grad_0, kept_0, scale_0, row, j, batch, H, read_0, has_kept)
    grad += drop(grad_1, kept_1, scale_1, row, j, batch, H, read_1, has_kept)
    passed_on = gather(
        goes, grad_h + there * pitch_h + j, out_h + outside + j, blocks_h + row * d + j,
        inside & (real == 0), has_out_h, has_blocks_h,
    )  # fmt: skip
    grad = tl.where(real, grad, passed_on)
    tl.store(grad_h + own, grad, mask=inside)
    enters, side = entrance(table, row, batch, d)
    tl.store(in_h + side + j, grad, mask=inside & enters)
