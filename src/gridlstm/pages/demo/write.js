"use strict";
// The room in which a character model writes, and the picture of its memories.

const UNITS = 20; // Shown per layer: the first ones.
const SHOWN = { "\n": "↵", " ": "␣" };

class WriteRoom {
  constructor(room, network) {
    this.parts = partsOf(room);
    this.writer = new Writer(new SequenceNetwork(network));
    this.layers = network.options.layers;
    this.columns = []; // What has been read: {character, blocks}.
    this.along = 0;
    this.random = seededRandom(Date.now());
    room.querySelector('[data-fact="layers"]').textContent = this.layers;
    this.map = new Heatmap(this.parts.memories, {
      rows: this.layers * UNITS,
      columns: (width) => Math.max(10, Math.floor(width / 11)),
      cell: 4,
      band: UNITS,
      kind: "signed",
      left: Array.from({ length: this.layers }, (_, i) => `layer ${this.layers - i}`),
      below: (column, count) => this.shown(this.columnAt(column, count)?.character ?? ""),
      value: (row, column, count) => this.valueAt(row, this.columnAt(column, count)),
      point: (row, column, count) => this.point(row, column, count),
    });
    const { form } = this.parts;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.begin(form.prompt.value);
    });
    form.temperature.addEventListener("input", () => (form.shown.value = Number(form.temperature.value).toFixed(1)));
    this.parts.pause.addEventListener("click", () => (this.running ? this.pause() : this.go()));
    room.querySelectorAll('[name="along"]').forEach((choice) =>
      choice.addEventListener("change", () => {
        this.along = Number(choice.value);
        this.map.draw();
      }));
    this.begin(form.prompt.value, 0);
  }

  /** Reads a prompt, and writes on after it unless told to write nothing. */
  begin(prompt, length = 1500) {
    this.writer.restart();
    this.columns = [];
    this.left = length;
    const known = [...prompt].filter((character) => this.writer.knows(character));
    const { text } = this.parts;
    text.replaceChildren(Object.assign(document.createElement("span"), { className: "prompt", textContent: known.join("") }));
    text.append(""); // What is written.
    for (const character of known.length ? known : ["\n"]) this.read(character);
    this.show();
    if (length) this.go();
  }

  read(character) {
    this.columns.push({ character, blocks: this.writer.read(character) });
    if (this.columns.length > 400) this.columns.shift();
  }

  go() {
    this.running = true;
    if (this.left <= 0) this.left = 1500;
    Object.assign(this.parts.pause, { disabled: false, textContent: "Pause" });
    clearTimeout(this.timer);
    this.tick();
  }

  pause() {
    this.running = false;
    clearTimeout(this.timer);
    this.parts.pause.textContent = "Go on";
  }

  /** Writes a character, and the next one a little later. */
  tick() {
    const character = this.writer.draw(Number(this.parts.form.temperature.value), this.random);
    const { text } = this.parts;
    const follows = text.scrollHeight - text.scrollTop - text.clientHeight < 40;
    text.lastChild.data += character;
    this.read(character);
    this.show();
    if (follows) text.scrollTop = text.scrollHeight;
    if (--this.left > 0) this.timer = setTimeout(() => this.tick(), 45);
    else this.pause();
  }

  /** Stops while another room is shown. */
  leave() {
    if (this.running) this.pause();
  }

  show() {
    showBars(this.parts.likely, this.writer.likely(8).map(({ character, probability }) =>
      ({ name: this.shown(character), share: probability })));
    this.map.draw();
  }

  shown(character) {
    return SHOWN[character] ?? character;
  }

  /** The character in a column of the picture, which shows the last ones. */
  columnAt(column, count) {
    return this.columns[Math.max(0, this.columns.length - count) + column];
  }

  /** A memory, divided by 3 to fit most of them between -1 and 1. The last layer is on top. */
  valueAt(row, column) {
    return column && this.memory(row, column) / 3;
  }

  memory(row, column) {
    return column.blocks[this.layers - 1 - Math.floor(row / UNITS)].outgoing[this.along].m[row % UNITS];
  }

  point(row, column, count) {
    const read = row === undefined ? undefined : this.columnAt(column, count);
    this.parts.readout.textContent = read
      ? `After “${this.shown(read.character)}”, layer ${this.layers - Math.floor(row / UNITS)}, unit ${row % UNITS + 1}: ` +
        `memory ${this.memory(row, read).toFixed(3)}`
      : "";
  }
}
