"""The backend in PyTorch: for every device, dtype and cell.

``native/kernel.c`` has the same functions, for speed; this is the place to read first.
"""

import torch
from torch import Tensor

from gridlstm.block import Block, Kept, Transform, keep
from gridlstm.cells import Vectors
from gridlstm.engines.backend import Backend, Boundary
from gridlstm.engines.buffers import Buffers, Call, Gradients
from gridlstm.engines.moves import Move, copy, make_moves, make_sets
from gridlstm.state import State, where_real

__all__ = ["TorchBackend"]


class TorchBackend(Backend):
    """Works on all blocks of a step at once; see :class:`Backend`."""

    name = "PyTorch"

    def __init__(
        self, call: Call, buffers: Buffers, gradients: Gradients | None, boundary: Boundary
    ) -> None:
        super().__init__(call, buffers, gradients, boundary)
        device = buffers.hidden.data.device
        self.moves = make_moves(call.plan, device)
        self.sets = make_sets(call.plan, device)

    @staticmethod
    def not_supported_reasons(block: Block, like: Tensor, product: torch.dtype) -> list[str]:
        """Nothing: it supports every call."""
        return []

    def enter(self, s: int) -> None:
        """Copies the incoming sides into the rows of a step."""
        for i, transform in enumerate(self.call.block.transforms):
            rows = _rows(transform, self.buffers, s)
            copy(self.moves[s].enter[i], self.boundary.incoming[i], rows)

    def read(self, s: int, p: int) -> None:
        """Copies what the phase reads, after dropout. An earlier phase wrote its results (Eq. 7)."""
        h, x = self.buffers.hidden.at(s), self.buffers.inputs[p].at(s)
        for transform in self.call.block.transforms:
            if transform.phase >= p:
                x[..., transform.hidden] = self._drop(s, p, transform, h[..., transform.hidden])

    def forward(self, s: int, p: int) -> None:
        """Adds biases, runs the cells, and hands the new vectors on."""
        block, real = self.call.block, self._real(s)
        gates = self.buffers.gates[p].at(s)
        for i in block.phases[p]:
            transform = block.transforms[i]
            old = _rows(transform, self.buffers, s)
            # Arithmetic is in the dtype of the states, whatever that of the products.
            rows = gates[..., transform.gates].to(old.hidden.dtype)
            self._add_bias(s, p, transform, rows)
            new = transform.cell.forward_(rows, old, self._vectors(s, p, transform))
            if rows.dtype != gates.dtype:
                gates[..., transform.gates] = transform.cell.encode_gates(rows, gates.dtype)
            new = keep(self._kept(s, transform), new, old)
            if real is not None:
                new = where_real(real, new, old)
            self._hand_on(s, i, new)
            if p + 1 < len(block.phases):
                x = self.buffers.inputs[p + 1].at(s)
                x[..., transform.hidden] = self._drop(s, p + 1, transform, new.hidden)

    def _hand_on(self, s: int, i: int, new: State) -> None:
        go = self.moves[s].go[i]
        if go is not None:
            copy(go, new, _rows(self.call.block.transforms[i], self.buffers, s + 1))
        copy(self.moves[s].leave[i], new, self.boundary.outgoing[i])
        if self.boundary.blocks:
            copy(Move(slice(None), self._blocks(s)), new, self.boundary.blocks[i])

    def backward(self, s: int, p: int) -> None:
        """Runs the backward of the cells; gates are overwritten with gradients of preactivations."""
        assert self.gradients is not None, "a backward pass has gradients"
        block, real = self.call.block, self._real(s)
        gates = self.buffers.gates[p].at(s)
        if real is not None:
            # A masked block may have read NaN, and 0 · NaN would spoil the gradient of the weights.
            self.buffers.inputs[p].at(s).masked_fill_(~real, 0)
        for i in block.phases[p]:
            transform = block.transforms[i]
            grad = self._gather(s, i)
            if p + 1 < len(block.phases):
                read = self.gradients.inputs[p + 1].at(s)[..., transform.hidden]
                grad.hidden.add_(self._drop(s, p + 1, transform, read))
            old, before = (_rows(transform, pair, s) for pair in (self.buffers, self.gradients))
            rows = gates[..., transform.gates].to(grad.hidden.dtype)
            if rows.dtype != gates.dtype:
                rows = transform.cell.decode_gates(rows, gates.dtype)
            shares = self._kept(s, transform)
            (grad_h, held_h), (grad_m, held_m) = map(_split, grad, shares)
            assert grad_h is not None, "every dimension has a hidden vector"
            vectors = self._vectors(s, p, transform)
            direct = transform.cell.backward_(rows, old, State(grad_h, grad_m), vectors)
            if transform.reads_hidden:  # `finish` adds the gradient by way of H.
                before.hidden.copy_(_sum(direct.hidden, held_h))
            if before.memory is not None:
                assert direct.memory is not None, "the cell reads its old memory"
                assert grad.memory is not None
                before.memory.copy_(_where(real, _sum(direct.memory, held_m), grad.memory))
            self._add_vectors(s, p, transform, direct.vectors)
            gates[..., transform.gates] = rows if real is None else rows.masked_fill(~real, 0)

    def finish(self, s: int) -> None:
        """Adds up the gradients by way of H, and copies those of the incoming sides out."""
        assert self.gradients is not None, "a backward pass has gradients"
        real = self._real(s)
        for i, transform in enumerate(self.call.block.transforms):
            rows = _rows(transform, self.gradients, s)
            if self.gradients.inputs[0] is not self.gradients.hidden:
                if not transform.reads_hidden:
                    rows.hidden.zero_()
                for p in range(transform.phase + 1):
                    read = self.gradients.inputs[p].at(s)[..., transform.hidden]
                    rows.hidden.add_(self._drop(s, p, transform, read))
            if real is not None:
                rows.hidden.copy_(torch.where(real, rows.hidden, self._gather(s, i).hidden))
            move = self.moves[s].enter[i]
            copy(move and move.back(), rows, self.boundary.incoming[i])

    def _gather(self, s: int, i: int) -> State:
        """The gradients of a step's new vectors: from where they went, and from the trace."""
        assert self.gradients is not None, "a backward pass has gradients"
        transform, moves = self.call.block.transforms[i], self.moves[s]
        # Zero where no gradient comes back because a side was not used.
        grad = _rows(transform, self.gradients, s).map(torch.zeros_like)
        go, leave = moves.go[i], moves.leave[i]
        if go is not None:
            copy(go.back(), _rows(transform, self.gradients, s + 1), grad)
        if leave is not None:
            copy(leave.back(), self.boundary.outgoing[i], grad)
        if self.boundary.blocks:
            for vectors, traced in zip(grad, self.boundary.blocks[i], strict=True):
                if vectors is not None and traced is not None:
                    vectors += traced[self._blocks(s)]
        return grad

    def _blocks(self, s: int) -> slice:
        return slice(self.call.plan.steps[s].start, self.call.plan.steps[s].stop)

    def _real(self, s: int) -> Tensor | None:
        return None if self.call.mask is None else self.call.mask[self._blocks(s)].unsqueeze(-1)

    def _drop(self, s: int, p: int, transform: Transform, vectors: Tensor) -> Tensor:
        if self.call.dropout is None:
            return vectors
        kept, scale = (t[p, self._blocks(s)][..., transform.hidden] for t in self.call.dropout)
        return vectors * kept * scale.unsqueeze(1)

    def _kept(self, s: int, transform: Transform) -> tuple[Tensor | float, Tensor | float]:
        zoneout, blocks = self.call.zoneout, self._blocks(s)
        if zoneout is not None:
            zoneout = Kept(*(None if t is None else t[blocks] for t in zoneout))
        return transform.kept(zoneout)

    def _vectors(self, s: int, p: int, transform: Transform) -> dict[str, Tensor]:
        """The learned vectors of the cell for each block of a step, ``[blocks, batch, count · d]``."""
        joined = self.call.vectors[p]
        if joined is None or not transform.cell.vectors:
            return {}
        by_block = joined[:, transform.vectors].index_select(0, self._sets(s))
        return transform.cell.split_vectors(by_block.unsqueeze(1).expand(-1, self.call.batch, -1))

    def _add_vectors(self, s: int, p: int, transform: Transform, grads: Vectors) -> None:
        assert self.gradients is not None, "a backward pass has gradients"
        total, real = self.gradients.vectors[p], self._real(s)
        if total is None or not grads:
            return
        grad = torch.cat([grads[name] for name in transform.cell.vectors], -1)
        grad = grad if real is None else grad.masked_fill(~real, 0)
        total[:, transform.vectors].index_add_(0, self._sets(s), grad.sum(1))

    def _sets(self, s: int) -> Tensor:
        """The weight set of each block of a step."""
        return self.sets[self._blocks(s)]

    def _add_bias(self, s: int, p: int, transform: Transform, rows: Tensor) -> None:
        bias = self.call.biases[p]
        if bias is not None:
            for weight_set, first, last in self.call.plan.steps[s].groups:
                rows[first:last] += bias[weight_set, transform.gates]


def _rows(transform: Transform, pair: Buffers | Gradients, s: int) -> State:
    """The columns of one dimension in the rows of a step."""
    m = None if transform.memory is None else pair.memory.at(s)[..., transform.memory]
    return State(pair.hidden.at(s)[..., transform.hidden], m)


def _where(real: Tensor | None, new: Tensor, old: Tensor) -> Tensor:
    return new if real is None else torch.where(real, new, old)


def _split(grad: Tensor | None, share: Tensor | float) -> tuple[Tensor | None, Tensor | None]:
    """The gradient of a new vector, and the part for the old one, of which a share was kept."""
    if grad is None or (isinstance(share, float) and share == 0):
        return grad, None
    held = grad * share
    return grad - held, held


def _sum(first: Tensor | None, second: Tensor | None) -> Tensor:
    if first is None or second is None:
        only = first if second is None else second
        assert only is not None, "one of the two depends on the old vector"
        return only
    return first + second
