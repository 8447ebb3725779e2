"use strict";
// The file format of the weights: the length of a header, the header in JSON, then the numbers.

/** The bytes of a base64 text. */
function fromBase64(text) {
  const characters = atob(text);
  const bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
}

/** A number in half precision: sign, 5 bits of exponent, 10 bits of fraction. */
function fromHalf(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = bits & 1023;
  if (exponent === 31) return fraction ? NaN : sign * Infinity;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction / 1024) : 2 ** -24 * fraction);
}

const NUMBERS = {
  F32: (buffer) => new Float32Array(buffer),
  F16: (buffer) => Float32Array.from(new Uint16Array(buffer), fromHalf),
  U8: (buffer) => new Uint8Array(buffer),
};

/** The tensors of a safetensors file by name, each with its shape and its numbers in row-major order. */
function readSafetensors(bytes) {
  const start = 8 + Number(new DataView(bytes.buffer).getBigUint64(0, true));
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(8, start)));
  const tensors = {};
  for (const [name, entry] of Object.entries(header)) {
    if (name === "__metadata__") continue;
    const [begin, end] = entry.data_offsets;
    const buffer = bytes.buffer.slice(start + begin, start + end); // A copy, so that it is aligned.
    tensors[name] = { shape: entry.shape, data: NUMBERS[entry.dtype](buffer) };
  }
  return tensors;
}
