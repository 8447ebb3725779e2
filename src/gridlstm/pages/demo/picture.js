"use strict";
// A drawing as an image like those of MNIST, as `gridlstm classify` makes it of a picture: the digit
// fits into a box of 20 × 20 pixels and has its centre of mass in the middle of 28 × 28.

const SIDE = 28, BOX = 20, FAINT = 1 / 64;

/** Rounds halves to even, as Python does. */
function roundEven(x) {
  const floor = Math.floor(x);
  if (x - floor !== 0.5) return Math.round(x);
  return floor % 2 ? floor + 1 : floor;
}

/** An image of bytes [28 * 28] from ink {width, height, data} between 0 and 1; null without any. */
function toDigit(ink) {
  const box = findBox(ink);
  if (!box) return null;
  const cut = crop(ink, box);
  const scale = BOX / Math.max(cut.width, cut.height);
  const width = Math.max(1, roundEven(cut.width * scale));
  const height = Math.max(1, roundEven(cut.height * scale));
  return centred(transpose(resizeRows(transpose(resizeRows(cut, width)), height)));
}

/** The bounding box of what is not faint. */
function findBox({ width, height, data }) {
  let left = width, right = -1, top = height, bottom = -1;
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      if (data[y * width + x] <= FAINT) continue;
      left = Math.min(left, x);
      right = Math.max(right, x);
      top = Math.min(top, y);
      bottom = y;
    }
  }
  return right < 0 ? null : { left, top, width: right - left + 1, height: bottom - top + 1 };
}

function crop(ink, { left, top, width, height }) {
  const data = new Float32Array(width * height);
  for (let y = 0; y < height; y++) {
    const begin = (top + y) * ink.width + left;
    data.set(ink.data.subarray(begin, begin + width), y * width);
  }
  return { width, height, data };
}

function transpose({ width, height, data }) {
  const turned = new Float32Array(width * height);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) turned[x * height + y] = data[y * width + x];
  return { width: height, height: width, data: turned };
}

/** Rows scaled to a new width with a triangle filter, as wide as a new pixel (Pillow's bilinear). */
function resizeRows({ width, height, data }, size) {
  if (size === width) return { width, height, data };
  const scale = width / size;
  const support = Math.max(scale, 1);
  const out = new Float32Array(size * height);
  for (let i = 0; i < size; i++) {
    const centre = (i + 0.5) * scale;
    const first = Math.max(0, Math.trunc(centre - support + 0.5));
    const last = Math.min(width, Math.trunc(centre + support + 0.5));
    const weights = [];
    for (let x = first; x < last; x++) weights.push(Math.max(0, 1 - Math.abs(x + 0.5 - centre) / support));
    const total = weights.reduce((a, b) => a + b, 0);
    for (let y = 0; y < height; y++) {
      const sum = weights.reduce((s, weight, k) => s + weight * data[y * width + first + k], 0);
      out[y * size + i] = sum / total;
    }
  }
  return { width: size, height, data: out };
}

/** A digit, scaled to a maximum of 1, placed in an image by its centre of mass. */
function centred({ width, height, data }) {
  const largest = data.reduce((a, b) => Math.max(a, b), 0);
  let mass = 0, right = 0, down = 0;
  data.forEach((ink, i) => {
    mass += ink;
    right += ink * (i % width);
    down += ink * Math.floor(i / width);
  });
  const place = (centre, size) => Math.min(Math.max(roundEven(SIDE / 2 - centre), 0), SIDE - size);
  const left = place(right / mass, width), top = place(down / mass, height);
  const image = new Uint8Array(SIDE * SIDE);
  data.forEach((ink, i) => {
    image[(top + Math.floor(i / width)) * SIDE + left + (i % width)] = roundEven((255 * ink) / largest);
  });
  return image;
}
