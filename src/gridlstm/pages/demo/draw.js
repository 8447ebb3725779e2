"use strict";
// The room in which a digit is drawn and recognised, and the maps of the four sweeps.

const PAD = 200; // The drawing area in its own pixels, whatever its size on the screen.
const PEN = 16;
const ARROWS = ["↘", "↙", "↖", "↗"]; // Of the sweeps, in the order of CORNERS.

class DrawRoom {
  constructor(room, network, samples) {
    this.parts = partsOf(room);
    this.network = new ImageNetwork(network);
    this.positions = SIDE / this.network.patch;
    this.ink = new OffscreenCanvas(PAD, PAD).getContext("2d", { willReadFrequently: true });
    Object.assign(this.ink, { lineWidth: PEN, lineCap: "round", lineJoin: "round" });
    this.pen = { x: PAD / 2, y: PAD / 4, down: false };
    this.makeMaps();
    this.makeSamples(samples);
    const { pad } = this.parts;
    pad.addEventListener("pointerdown", (event) => this.onDown(event));
    pad.addEventListener("pointermove", (event) => this.onMove(event));
    pad.addEventListener("keydown", (event) => this.onKey(event));
    pad.addEventListener("focus", () => this.drawPad());
    pad.addEventListener("blur", () => this.drawPad());
    this.parts.clear.addEventListener("click", () => this.clear());
    onLook(pad, () => this.drawPad());
    this.clear();
  }

  makeMaps() {
    const pixel = (row, column) => this.image && this.image[row * SIDE + column] / 255;
    const seen = appendFigure(this.parts.maps, "Its input", "The drawing in 28 by 28 pixels");
    this.maps = [new Heatmap(seen, {
      rows: SIDE,
      columns: SIDE,
      kind: "positive",
      value: pixel,
      point: (row, column) => this.tell(row !== undefined && this.image &&
        `Row ${row + 1}, column ${column + 1}: brightness ${this.image[row * SIDE + column]} of 255`),
    })];
    ARROWS.forEach((arrow, layer) => {
      const canvas = appendFigure(this.parts.maps, `Sweep ${layer + 1} ${arrow}`,
        `Mean absolute memory after sweep ${layer + 1}, for each of ${this.positions} by ${this.positions} patches`);
      const strength = (row, column) => this.strengths?.[layer][row * this.positions + column];
      const largest = () => Math.max(...this.strengths[layer]);
      this.maps.push(new Heatmap(canvas, {
        rows: this.positions,
        columns: this.positions,
        kind: "positive",
        value: (row, column) => this.strengths && strength(row, column) / largest(),
        point: (row, column) => this.tell(row !== undefined && this.strengths &&
          `Sweep ${layer + 1}, patch ${row + 1}, ${column + 1}: mean |memory| ${strength(row, column).toFixed(3)}`),
      }));
    });
  }

  /** Buttons with digits of the data set. */
  makeSamples(samples) {
    samples.forEach(({ digit, pixels }) => {
      const image = fromBase64(pixels);
      const button = document.createElement("button");
      const canvas = Object.assign(document.createElement("canvas"), { width: SIDE, height: SIDE });
      Object.assign(button, { type: "button", title: `Digit ${digit}` });
      button.setAttribute("aria-label", `Digit ${digit}`);
      canvas.setAttribute("aria-hidden", "true");
      button.append(canvas);
      button.addEventListener("click", () => this.choose(image));
      this.parts.samples.append(button);
      const paint = () => canvas.getContext("2d").putImageData(this.tinted(image), 0, 0);
      document.addEventListener("themechange", paint);
      paint();
    });
  }

  /** An image of bytes as pixels in the colour of text. */
  tinted(image) {
    const pixels = new ImageData(SIDE, SIDE);
    const colour = colourOf("text");
    image.forEach((byte, i) => pixels.data.set([...colour, byte], 4 * i));
    return pixels;
  }

  clear() {
    this.ink.clearRect(0, 0, PAD, PAD);
    this.chosen = false;
    this.pen.down = false;
    this.update(null);
  }

  /** Shows a digit of the data set, exactly as the network was trained on such. */
  choose(image) {
    this.ink.clearRect(0, 0, PAD, PAD);
    const small = new OffscreenCanvas(SIDE, SIDE);
    small.getContext("2d").putImageData(this.tinted(image), 0, 0);
    this.ink.drawImage(small, 0, 0, PAD, PAD);
    this.chosen = true; // The next stroke starts a new drawing.
    this.update(image);
  }

  /** Draws a line; a point if both ends are equal. */
  stroke(from, to) {
    if (this.chosen) this.clear();
    this.ink.beginPath();
    this.ink.moveTo(from.x, from.y);
    this.ink.lineTo(to.x + 0.01, to.y); // A line without length would not be drawn.
    this.ink.stroke();
    this.drawPad();
    this.scheduled ??= requestAnimationFrame(() => {
      this.scheduled = undefined;
      this.update(toDigit(this.readInk()));
    });
  }

  readInk() {
    const { data } = this.ink.getImageData(0, 0, PAD, PAD);
    return { width: PAD, height: PAD, data: Float32Array.from({ length: PAD * PAD }, (_, i) => data[4 * i + 3] / 255) };
  }

  at(event) {
    const box = this.parts.pad.getBoundingClientRect();
    return { x: ((event.clientX - box.left) / box.width) * PAD, y: ((event.clientY - box.top) / box.height) * PAD };
  }

  onDown(event) {
    if (event.isTrusted) this.parts.pad.setPointerCapture(event.pointerId);
    this.last = this.at(event);
    this.stroke(this.last, this.last);
  }

  onMove(event) {
    if (!event.buttons || !this.last) return;
    for (const passed of event.getCoalescedEvents?.() ?? []) this.lineTo(this.at(passed));
    this.lineTo(this.at(event));
  }

  lineTo(point) {
    this.stroke(this.last, point);
    this.last = point;
  }

  onKey(event) {
    const step = { ArrowUp: [0, -6], ArrowDown: [0, 6], ArrowLeft: [-6, 0], ArrowRight: [6, 0] }[event.key];
    if (!step && event.key !== " ") return;
    event.preventDefault();
    const before = { ...this.pen };
    const within = (x) => Math.max(PEN / 2, Math.min(PAD - PEN / 2, x));
    if (step) Object.assign(this.pen, { x: within(before.x + step[0]), y: within(before.y + step[1]) });
    else if (this.chosen) this.clear();
    if (!step) this.pen.down = !before.down;
    if (this.pen.down) this.stroke(before, this.pen);
    else this.drawPad();
  }

  /** Shows the drawing in the colours of the page and, if the keyboard is used, the pen. */
  drawPad() {
    const { pad } = this.parts;
    const size = Math.round(pad.clientWidth * (window.devicePixelRatio || 1));
    if (!size) return;
    Object.assign(pad, { width: size, height: size });
    const context = pad.getContext("2d");
    context.drawImage(this.ink.canvas, 0, 0, size, size);
    context.globalCompositeOperation = "source-in";
    context.fillStyle = css("text");
    context.fillRect(0, 0, size, size);
    if (!pad.matches(":focus-visible")) return;
    context.globalCompositeOperation = "source-over";
    context.strokeStyle = css(this.pen.down ? "positive" : "accent");
    context.lineWidth = size / 100;
    context.beginPath();
    context.arc((this.pen.x / PAD) * size, (this.pen.y / PAD) * size, (PEN / 2 / PAD) * size, 0, 7);
    context.stroke();
  }

  /** Classifies an image; null for none. */
  update(image) {
    this.image = image ?? undefined;
    this.result = image ? this.network.classify(image) : undefined;
    this.strengths = this.result?.sweeps.map((sweep) =>
      sweep.map(({ m }) => m.reduce((sum, x) => sum + Math.abs(x), 0) / m.length));
    const shares = this.result?.probabilities ?? new Float64Array(10);
    const best = argmax(shares);
    this.parts.answer.textContent = image ? best : "–";
    this.parts.sure.textContent = image ? `with probability ${(100 * shares[best]).toFixed(1)} %` : "Nothing drawn yet";
    showBars(this.parts.classes, Array.from(shares, (share, digit) => ({ name: String(digit), share })));
    this.maps.forEach((map) => map.draw());
    this.drawPad();
  }

  tell(text) {
    this.parts.readout.textContent = text || "";
  }
}
