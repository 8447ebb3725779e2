"use strict";
// Grids of blocks. All blocks with the same number of steps from the corner where a grid begins are
// independent of each other: they are one wave.

/** A grid from the weights of a network: one entry per dimension, in order. */
function makeGrid(tensors, prefix, names, reverse = []) {
  const dims = names.map((name, i) => {
    const W = tensors[`${prefix}weight_${name}`];
    const rows = W.shape[0] * names.length;
    return {
      name,
      W: W.data,
      b: tensors[`${prefix}bias_${name}`].data,
      memory: rows === 4 * W.shape[1], // Four gates; a dimension without memory has one set of rows.
      reverse: Boolean(reverse[i]),
    };
  });
  return { dims, d: tensors[`${prefix}weight_${names[0]}`].shape[1] / names.length };
}

/** The number of a block's place on the side of dimension i: its position without coordinate i. */
function faceNumber(position, sizes, i) {
  return position.reduce((number, x, j) => (j === i ? number : number * sizes[j] + x), 0);
}

/** The positions of a grid, wave by wave. */
function* waves(sizes, reverse) {
  const steps = sizes.reduce((sum, size) => sum + size - 1, 0);
  for (let step = 0; step <= steps; step++) {
    const wave = [];
    (function choose(travelled, left) {
      const i = travelled.length;
      if (i === sizes.length) {
        if (left === 0) wave.push(travelled.map((x, j) => (reverse[j] ? sizes[j] - 1 - x : x)));
        return;
      }
      for (let x = 0; x <= Math.min(left, sizes[i] - 1); x++) choose([...travelled, x], left - x);
    })([], step);
    yield wave;
  }
}

/**
 * Runs a grid. Yields each wave as a list of blocks {position, incoming, outgoing}, and returns the
 * sides that leave the grid. sides[i] has one pair {h, m} per face of dimension i; missing sides are
 * zero.
 */
function* waveRun(grid, sizes, sides) {
  const { dims, d } = grid;
  const travelling = dims.map((dim, i) => {
    const faces = sizes.reduce((product, size, j) => (j === i ? product : product * size), 1);
    const zero = () => ({ h: new Float32Array(d), m: dim.memory ? new Float32Array(d) : undefined });
    return sides[i] ? [...sides[i]] : Array.from({ length: faces }, zero);
  });
  for (const wave of waves(sizes, dims.map((dim) => dim.reverse))) {
    yield wave.map((position) => {
      const faces = dims.map((_, i) => faceNumber(position, sizes, i));
      const incoming = faces.map((face, i) => travelling[i][face]);
      const outgoing = applyBlock(dims, incoming);
      faces.forEach((face, i) => (travelling[i][face] = outgoing[i]));
      return { position, incoming, outgoing };
    });
  }
  return travelling;
}

/** Runs a grid to its end: the sides that leave it, and all its blocks. */
function runGrid(grid, sizes, sides) {
  const blocks = [];
  const run = waveRun(grid, sizes, sides);
  let next = run.next();
  for (; !next.done; next = run.next()) blocks.push(...next.value);
  return { sides: next.value, blocks };
}
