"use strict";
// Translation: the Reencoder (section 4.4), its vocabularies, and the search for a translation.

const BEGIN = 1, END = 2, UNKNOWN = 3, MARKS = 4;
const BANNED = [0, BEGIN, UNKNOWN]; // Never written.

class Reencoder {
  constructor({ tensors, options }) {
    this.tensors = tensors;
    this.grids = Array.from({ length: options.layers }, (_, layer) =>
      makeGrid(tensors, `model.stack.grids.${layer}.`, ["source", "target", "depth"], [layer % 2 === 1]));
    const languages = JSON.parse(new TextDecoder().decode(tensors.languages.data));
    [this.source, this.target] = [languages.source, languages.target].map(({ vocabulary }) => JSON.parse(vocabulary));
    this.numbers = new Map(this.source.words.map((word, i) => [word, i + MARKS]));
  }

  /** The characters of a Chinese sentence; words in Latin letters stay whole. */
  split(sentence) {
    return sentence.normalize("NFC").match(/[A-Za-zÀ-ÿ]+|\S/gu) ?? [];
  }

  encode(words) {
    return words.map((word) => this.numbers.get(word.toLowerCase()) ?? UNKNOWN);
  }

  decode(numbers) {
    return numbers.map((number) => this.target.written[number - MARKS]);
  }

  /** The pair of a word, from the table of a language. */
  word(language, number) {
    const { shape, data } = this.tensors[`model.${language}.weight`];
    return asPair(data.slice(number * shape[1], (number + 1) * shape[1]));
  }

  /** What the first step needs: the sides along the target sentence. Words enter the first grid only. */
  start(source) {
    return [source.map((number) => this.word("source", number))];
  }

  /**
   * Runs one row of blocks in each grid: reads a target word and scores the next one. The alignment is
   * how much each block changes the memory of the row, for each grid and source word.
   */
  step(number, carried) {
    const n = carried[0].length;
    let depth;
    let row = [this.word("target", number)];
    const alignment = [];
    const next = this.grids.map((grid, layer) => {
      const { sides, blocks } = runGrid(grid, [n, 1, 1], [layer ? undefined : row, carried[layer], depth]);
      const change = new Float32Array(n);
      for (const { position, incoming, outgoing } of blocks) {
        change[position[0]] = Math.hypot(...outgoing[0].m.map((x, i) => x - incoming[0].m[i]));
      }
      alignment.push(change);
      depth = sides[2];
      if (layer === this.grids.length - 1) row = sides[0];
      return sides[1];
    });
    const scores = linear(this.tensors["model.scores.weight"].data, this.tensors["model.scores.bias"].data,
      concatenate([row[0].h, row[0].m]));
    return { scores, carried: next, alignment };
  }
}

/**
 * The best translation that beam search finds: at every step each candidate is continued by every
 * word, and the most likely continuations are kept. Calls pause between steps, to keep a page alive.
 */
async function beamSearch(model, source, beam, pause = async () => {}) {
  const most = 2 * source.length + 10;
  const least = Math.min(Math.ceil(source.length / 2), most);
  let alive = [{ words: [BEGIN], score: 0, carried: model.start(source), alignment: [] }];
  let best = null;
  while (alive.length) {
    const continued = [];
    for (const candidate of alive) {
      const step = model.step(candidate.words.at(-1), candidate.carried);
      const alignment = [...candidate.alignment, step.alignment];
      for (const { word, log } of likeliest(step.scores, candidate.words.length - 1, beam, least, most)) {
        const words = [...candidate.words, word];
        continued.push({ words, score: candidate.score + log, carried: step.carried, alignment });
      }
      await pause();
    }
    continued.sort((a, b) => b.score - a.score);
    const kept = continued.slice(0, beam);
    for (const candidate of kept) {
      if (candidate.words.at(-1) === END && (!best || candidate.score > best.score)) best = candidate;
    }
    alive = kept.filter(({ words, score }) => words.at(-1) !== END && (!best || score > best.score));
  }
  return { words: best ? best.words.slice(1, -1) : [], score: best?.score, alignment: best?.alignment ?? [] };
}

/** The most likely next words that are allowed after so many, with their log-probabilities. */
function likeliest(scores, written, count, least, most) {
  const largest = scores.reduce((a, b) => Math.max(a, b), -Infinity);
  const total = Math.log(scores.reduce((sum, s) => sum + Math.exp(s - largest), 0)) + largest;
  const allowed = [];
  scores.forEach((score, word) => {
    const possible = word === END ? written >= least : written < most && !BANNED.includes(word);
    if (possible) allowed.push({ word, log: score - total });
  });
  return allowed.sort((a, b) => b.log - a.log).slice(0, count);
}

/** English words as text: the usual spaces, and capitals at the beginning of sentences. */
function joinWords(words) {
  const text = words.join(" ")
    .replace(/ ([,.!?;:%)\]])/g, "$1")
    .replace(/ ('(?:s|m|re|ve|ll|d|t|clock))\b/gi, "$1")
    .replace(/(\d): (\d)/g, "$1:$2")
    .replace(/([([$]) /g, "$1")
    .replace(/" ([^"]*?) ?"/g, '"$1"');
  return text.replace(/^\W*\w|(?<=\w\w[.!?] )\w/g, (first) => first.toUpperCase());
}
