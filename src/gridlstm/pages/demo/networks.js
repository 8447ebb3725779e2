"use strict";
// The networks that come with the package, made of grids: what enters their sides and what is read.

/** A 2-LSTM that reads symbols and scores the next or the due one at every time (sections 4.2, 4.3). */
class SequenceNetwork {
  constructor({ tensors, options }) {
    this.grid = makeGrid(tensors, "body.grid.", ["time", "depth"]);
    this.layers = options.layers;
    this.projection = tensors["body.projection.linear.weight"];
    this.projectionBias = tensors["body.projection.linear.bias"].data;
    this.scoreWeight = tensors["scores.weight"].data;
    this.scoreBias = tensors["scores.bias"].data;
    this.alphabet = tensors.alphabet?.data;
  }

  /** The pair with which a symbol enters the bottom of the grid: a column of the projection. */
  enter(symbol) {
    const [rows, symbols] = this.projection.shape;
    const column = new Float32Array(rows);
    for (let i = 0; i < rows; i++) {
      column[i] = this.projection.data[i * symbols + symbol] + this.projectionBias[i];
    }
    return asPair(column);
  }

  /** The scores of all symbols, from the pair that leaves the top. */
  score(top) {
    return linear(this.scoreWeight, this.scoreBias, concatenate([top.h, top.m]));
  }

  /** Reads one symbol after what left the previous step along time (at first: nothing). */
  step(symbol, time) {
    const { sides, blocks } = runGrid(this.grid, [1, this.layers], [time, [this.enter(symbol)]]);
    return { time: sides[0], scores: this.score(sides[1][0]), blocks };
  }

  /** Reads a whole sequence, wave by wave, as waveRun does. */
  waves(symbols) {
    const entering = symbols.map((symbol) => this.enter(symbol));
    return waveRun(this.grid, [symbols.length, this.layers], [undefined, entering]);
  }
}

const CORNERS = [[false, false], [false, true], [true, true], [true, false]];

/** The 3-LSTM over the patches of an image: four sweeps, one from each corner (appendix). */
class ImageNetwork {
  constructor({ tensors, options }) {
    this.tensors = tensors;
    this.patch = options.patch;
    this.grids = CORNERS.map((reverse, layer) =>
      makeGrid(tensors, `stack.grids.${layer}.`, ["row", "column", "depth"], reverse));
  }

  /** The classes' probabilities and, for each sweep, the pairs that leave it along depth. */
  classify(image, side = 28) {
    const { tensors } = this;
    const n = side / this.patch;
    let depth = this.cut(image, side).map((patch) =>
      asPair(linear(tensors["projection.linear.weight"].data, tensors["projection.linear.bias"].data, patch)));
    const sweeps = this.grids.map((grid) => {
      depth = runGrid(grid, [n, n, 1], [undefined, undefined, depth]).sides[2];
      return depth;
    });
    const features = concatenate(depth.flatMap(({ h, m }) => [h, m]));
    const relu = linear(tensors["relu.weight"].data, tensors["relu.bias"].data, features);
    const scores = linear(tensors["scores.weight"].data, tensors["scores.bias"].data,
      relu.map((x) => Math.max(x, 0)));
    return { probabilities: softmax(scores), sweeps, positions: n };
  }

  /** Patches of an image of bytes, from 0 to 1, row by row. */
  cut(image, side) {
    const p = this.patch;
    const patches = [];
    for (let top = 0; top < side; top += p) {
      for (let left = 0; left < side; left += p) {
        patches.push(Float32Array.from({ length: p * p }, (_, i) =>
          image[(top + Math.floor(i / p)) * side + left + (i % p)] / 255));
      }
    }
    return patches;
  }
}
