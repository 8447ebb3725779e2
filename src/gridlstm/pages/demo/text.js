"use strict";
// Writing text with a character model: random numbers, sampling, and the state of a text.

/** A generator of numbers in [0, 1) that the same seed always starts alike (mulberry32). */
function seededRandom(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), seed | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** A symbol drawn from the softmax of the scores; temperature 0 takes the most likely one. */
function drawSymbol(scores, temperature, random) {
  if (temperature === 0) return argmax(scores);
  const largest = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  let total = 0;
  const cumulative = Array.from(scores, (s) => (total += Math.exp((s - largest) / temperature)));
  const drawn = random() * total;
  return cumulative.findIndex((sum) => sum > drawn);
}

/** A text that a model reads and writes, one character at a time. */
class Writer {
  constructor(model) {
    this.model = model;
    this.characters = Array.from(model.alphabet, (byte) => String.fromCharCode(byte));
    this.restart();
  }

  restart() {
    this.time = undefined;
    this.scores = undefined;
  }

  /** Whether the model knows a character. */
  knows(character) {
    return this.characters.includes(character);
  }

  /** Reads a character, and returns the blocks of its column. */
  read(character) {
    const step = this.model.step(this.characters.indexOf(character), this.time);
    this.time = step.time;
    this.scores = step.scores;
    return step.blocks;
  }

  /** The next character, drawn from the scores after what has been read. */
  draw(temperature, random) {
    return this.characters[drawSymbol(this.scores, temperature, random)];
  }

  /** The most likely next characters with their probabilities. */
  likely(count) {
    return Array.from(softmax(this.scores), (probability, i) => ({ character: this.characters[i], probability }))
      .sort((a, b) => b.probability - a.probability)
      .slice(0, count);
  }
}

/** The text that a model writes after a prompt; unknown characters are not read, nothing is a newline. */
function continueText(model, prompt, length, temperature, random) {
  const writer = new Writer(model);
  const known = [...prompt].filter((character) => writer.knows(character));
  for (const character of known.length ? known : ["\n"]) writer.read(character);
  let written = "";
  while (written.length < length) {
    const character = writer.draw(temperature, random);
    written += character;
    writer.read(character);
  }
  return written;
}
