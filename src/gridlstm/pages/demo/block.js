"use strict";
// The block of the paper, in its letters: h hidden, m memory, H = [h_1; ...; h_N], and the gates
// g_u g_f g_o g_c (update, forget, output, content), which is also their order in the rows of W.

const sigmoid = (x) => 1 / (1 + Math.exp(-x));

/** W x + b, with W of shape [rows, x.length] in row-major order. Four sums, so that none waits. */
function linear(W, b, x) {
  const n = x.length;
  const rows = W.length / n;
  const y = new Float32Array(rows);
  for (let row = 0, k = 0; row < rows; row++) {
    let s0 = b ? b[row] : 0, s1 = 0, s2 = 0, s3 = 0, j = 0;
    for (; j + 4 <= n; j += 4, k += 4) {
      s0 += W[k] * x[j];
      s1 += W[k + 1] * x[j + 1];
      s2 += W[k + 2] * x[j + 2];
      s3 += W[k + 3] * x[j + 3];
    }
    for (; j < n; j++, k++) s0 += W[k] * x[j];
    y[row] = s0 + s1 + (s2 + s3);
  }
  return y;
}

/** Eq. 1: the new pair of vectors from the rows W H + b and the old memory. */
function lstm(rows, m) {
  const d = m.length;
  const out = { h: new Float32Array(d), m: new Float32Array(d) };
  for (let i = 0; i < d; i++) {
    const g_u = sigmoid(rows[i]);
    const g_f = sigmoid(rows[d + i]);
    const g_o = sigmoid(rows[2 * d + i]);
    const g_c = Math.tanh(rows[3 * d + i]);
    out.m[i] = g_f * m[i] + g_u * g_c;
    out.h[i] = Math.tanh(g_o * out.m[i]);
  }
  return out;
}

/** Eq. 5 and 6: N incoming pairs to N outgoing pairs. A dimension without memory hands on V H (Eq. 8). */
function applyBlock(dims, incoming) {
  const H = concatenate(incoming.map((side) => side.h));
  return dims.map((dim, i) => {
    const rows = linear(dim.W, dim.b, H);
    return dim.memory ? lstm(rows, incoming[i].m) : { h: rows };
  });
}

function concatenate(vectors) {
  const joined = new Float32Array(vectors.reduce((sum, v) => sum + v.length, 0));
  let at = 0;
  for (const v of vectors) {
    joined.set(v, at);
    at += v.length;
  }
  return joined;
}

/** A pair of vectors from one of twice the length: hidden, then memory. */
function asPair(vector) {
  const d = vector.length / 2;
  return { h: vector.slice(0, d), m: vector.slice(d) };
}

function softmax(scores) {
  const largest = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  const weights = Float64Array.from(scores, (s) => Math.exp(s - largest));
  const total = weights.reduce((a, b) => a + b, 0);
  return weights.map((w) => w / total);
}

/** The index of the largest value, the first if there are several. */
function argmax(values) {
  return values.reduce((best, value, i) => (value > values[best] ? i : best), 0);
}
