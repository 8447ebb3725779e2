"use strict";
// The room in which a network repeats letters from memory, wave by wave.

const BLANK = 0;

class SolveRoom {
  constructor(room, network) {
    this.parts = partsOf(room);
    this.network = new SequenceNetwork(network);
    this.length = network.options.length;
    this.layers = network.options.layers;
    this.times = 2 * this.length + 2;
    room.querySelector('[data-fact="length"]').textContent = this.length;
    const { form } = this.parts;
    form.word.maxLength = this.length;
    this.map = new Heatmap(this.parts.grid, {
      rows: this.layers,
      columns: this.times,
      cell: 34,
      band: 1,
      kind: "positive",
      left: Array.from({ length: this.layers }, (_, i) => `layer ${this.layers - i}`),
      above: (time) => this.output(time),
      below: (time) => this.letter(this.inputs[time]),
      value: (row, time) => this.strength(this.blockAt(row, time)),
      marked: (row, time) => this.wave.includes(this.blockAt(row, time)),
      point: (row, time) => this.point(row, time),
    });
    this.strips = ["hidden, along time", "memory, along time", "hidden, along depth", "memory, along depth"]
      .map((name, i) => this.makeStrip(name, i >> 1, i % 2 ? "m" : "h"));
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.running ? this.pause() : this.play();
    });
    form.word.addEventListener("input", () => this.restart());
    this.parts.step.addEventListener("click", () => {
      this.pause();
      this.step();
    });
    this.parts.restart.addEventListener("click", () => this.restart());
    this.parts.random.addEventListener("click", () => {
      form.word.value = Array.from({ length: this.length }, () => this.letter(1 + Math.floor(26 * Math.random()))).join("");
      this.restart();
    });
    this.restart();
  }

  makeStrip(name, dimension, kind) {
    const canvas = appendFigure(this.parts.strips, name, `${name}, of the chosen block`, { tabindex: "-1" });
    const half = this.network.grid.d / 2;
    const limit = kind === "m" ? 3 : 1; // Hidden values are between -1 and 1.
    return new Heatmap(canvas, {
      rows: 2,
      columns: half,
      kind: "signed",
      value: (row, column) => this.chosen && this.chosen.outgoing[dimension][kind][row * half + column] / limit,
    });
  }

  /** The symbols of a word: 1 for A; null if it is not a word of the right length. */
  encode(word) {
    const letters = word.toUpperCase();
    if (letters.length !== this.length || /[^A-Z]/.test(letters)) return null;
    return Array.from(letters, (letter) => letter.charCodeAt(0) - 64);
  }

  letter(symbol) {
    return symbol === BLANK ? "–" : String.fromCharCode(64 + symbol);
  }

  restart() {
    this.pause();
    const word = this.encode(this.parts.form.word.value);
    this.parts.step.disabled = this.parts.play.disabled = !word;
    const blanks = (count) => Array(count).fill(BLANK);
    this.inputs = [BLANK, ...(word ?? blanks(this.length)), ...blanks(this.length + 1)];
    this.blocks = new Map();
    this.wave = [];
    this.waves = this.network.waves(this.inputs);
    this.chosen = undefined;
    this.scores = [];
    this.finished = false;
    this.note(word ? "" : `Type ${this.length} letters from A to Z.`);
    this.show();
  }

  /** Computes the next wave. */
  step() {
    if (this.finished) this.restart();
    const { value, done } = this.waves.next();
    this.wave = done ? [] : value;
    for (const block of this.wave) {
      const [time, layer] = block.position;
      this.blocks.set(`${time},${layer}`, block);
      if (layer === this.layers - 1) this.scores[time] = this.network.score(block.outgoing[1]);
    }
    if (done) this.finish();
    else this.note(`Wave ${this.wave[0].position.reduce((a, b) => a + b) + 1} of ${this.times + this.layers - 1}`);
    this.show();
  }

  finish() {
    this.finished = true;
    const due = this.inputs.slice(1, this.length + 1).map((symbol) => this.letter(symbol)).join("");
    const given = Array.from({ length: this.length }, (_, i) => this.output(this.length + 1 + i)).join("");
    const blocks = this.times * this.layers;
    this.note(given === due
      ? `Repeated ${given}: ${blocks} blocks in ${this.times + this.layers - 1} waves.`
      : `Repeated ${given}; it should be ${due}.`);
    this.pause();
  }

  play() {
    if (this.finished) this.restart();
    this.running = true;
    this.parts.play.textContent = "Pause";
    const tick = () => {
      this.step();
      if (this.running) this.timer = setTimeout(tick, 160);
    };
    tick();
  }

  pause() {
    this.running = false;
    clearTimeout(this.timer);
    this.parts.play.textContent = "Play";
  }

  leave() {
    this.pause();
  }

  show() {
    this.map.draw();
    this.strips.forEach((strip) => strip.draw());
  }

  note(text) {
    this.parts.note.textContent = text;
  }

  /** The first row of the picture is the last layer. */
  blockAt(row, time) {
    return this.blocks.get(`${time},${this.layers - 1 - row}`);
  }

  /** How strong the memory is that a block hands on in time: its mean absolute value, about 1 at most. */
  strength(block) {
    return block && block.outgoing[0].m.reduce((sum, x) => sum + Math.abs(x), 0) / block.outgoing[0].m.length / 1.5;
  }

  /** The predicted letter at a time, once the wave has reached the top there. */
  output(time) {
    return this.scores[time] ? this.letter(argmax(this.scores[time])) : "";
  }

  point(row, time) {
    const block = row === undefined ? undefined : this.blockAt(row, time);
    if (block) this.chosen = block;
    let text = "";
    if (block) {
      const [h, m] = ["h", "m"].map((kind) => Math.hypot(...block.outgoing[0][kind]).toFixed(2));
      const [hd, md] = ["h", "m"].map((kind) => Math.hypot(...block.outgoing[1][kind]).toFixed(2));
      text = `Time ${time + 1}, layer ${this.layers - row}: along time |h| ${h}, |m| ${m}; along depth |h| ${hd}, |m| ${md}`;
      if (row === 0) {
        const shares = softmax(this.scores[time]);
        text += `; predicts ${this.output(time)} (${(100 * Math.max(...shares)).toFixed(1)} %)`;
      }
    } else if (row !== undefined) {
      text = `Time ${time + 1}, layer ${this.layers - row}: not yet computed`;
    }
    this.parts.readout.textContent = text;
    this.strips.forEach((strip) => strip.draw());
  }
}
