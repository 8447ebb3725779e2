"use strict";
// Pictures of numbers: colours, heat maps with a cursor, and bars.

const palette = new Map();
document.addEventListener("themechange", () => palette.clear());

/** A colour of the style sheet as [red, green, blue], in the present theme. */
function colourOf(name) {
  if (!palette.has(name)) {
    document.head.style.color = `var(--${name})`; // An element that is never seen.
    palette.set(name, getComputedStyle(document.head).color.match(/[\d.]+/g).slice(0, 3).map(Number));
  }
  return palette.get(name);
}

/** The same for a canvas. */
const css = (name) => `rgb(${colourOf(name).join(" ")})`;

/** A function from numbers to colours: blue, neutral, red for -1 to 1, or neutral to strong for 0 to 1. */
function colourScale(kind) {
  const neutral = colourOf("neutral");
  const [low, high] = (kind === "signed" ? ["negative", "positive"] : ["strong", "strong"]).map(colourOf);
  return (value) => {
    const end = value < 0 ? low : high;
    const share = Math.min(Math.abs(value), 1);
    return `rgb(${neutral.map((n, i) => Math.round(n + share * (end[i] - n))).join(" ")})`;
  };
}

/** Calls a function when the colours of the page or the size of an element change. */
function onLook(element, redraw) {
  document.addEventListener("themechange", redraw);
  new ResizeObserver(redraw).observe(element);
}

/**
 * A heat map of rows × columns cells. Options:
 *   rows, columns  numbers, or functions of the width that is left for cells
 *   value          (row, column) => number, or undefined where nothing is known yet
 *   kind           "signed" for -1 to 1, "positive" for 0 to 1
 *   cell           the height of a cell in pixels; by default cells are square
 *   band           rows per band; bands are set apart
 *   left           labels of bands, from the top
 *   above, below   (column) => labels of columns: outputs and inputs
 *   marked         (row, column) => whether to frame a cell
 *   point          (row, column) => called with the cell under the cursor
 */
class Heatmap {
  constructor(canvas, options) {
    Object.assign(this, { canvas, cursor: null, options });
    canvas.addEventListener("pointermove", (event) => this.pointAt(event));
    canvas.addEventListener("pointerdown", (event) => this.pointAt(event));
    canvas.addEventListener("pointerleave", (event) => {
      if (event.pointerType === "mouse") this.point(null); // What a finger has touched stays.
    });
    canvas.addEventListener("blur", () => this.point(null));
    canvas.addEventListener("keydown", (event) => this.onKey(event));
    onLook(canvas, () => this.draw());
  }

  /** Where cells lie, in pixels. */
  layout() {
    const { rows, columns, cell, band, left, above, below } = this.options;
    const width = this.canvas.clientWidth;
    const begin = left ? 58 : 0;
    const count = typeof columns === "function" ? columns(width - begin) : columns;
    const w = (width - begin) / count;
    const h = cell ?? w;
    const gap = band > 1 ? 6 : 0;
    const top = above ? 22 : 0;
    const y = (row) => top + row * h + (band ? Math.floor(row / band) * gap : 0);
    return { begin, count, w, h, y, height: y(rows - 1) + h + (below ? 22 : 0) };
  }

  draw() {
    if (!this.canvas.clientWidth) return; // Hidden.
    const { rows, value, kind, band, left, above, below, marked } = this.options;
    const { begin, count, w, h, y, height } = (this.shape = this.layout());
    const ratio = window.devicePixelRatio || 1;
    this.canvas.width = Math.round(this.canvas.clientWidth * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.canvas.style.height = `${height}px`;
    const context = this.canvas.getContext("2d");
    context.scale(ratio, ratio);
    const colour = colourScale(kind);
    const empty = css("empty");
    const space = w > 8 ? 1 : 0;
    for (let row = 0; row < rows; row++) {
      for (let column = 0; column < count; column++) {
        const x = value(row, column, count);
        context.fillStyle = x === undefined ? empty : colour(x);
        context.fillRect(begin + column * w, y(row), w - space, h - (h > 8 ? 1 : 0));
      }
    }
    context.lineWidth = 2;
    const frame = (row, column, name) => {
      context.strokeStyle = css(name);
      context.strokeRect(begin + column * w + 1, y(row) + 1, w - 2 - space, h - 2 - space);
    };
    for (let row = 0; marked && row < rows; row++) {
      for (let column = 0; column < count; column++) if (marked(row, column)) frame(row, column, "text");
    }
    if (this.cursor) frame(...this.cursor, "accent");
    const style = getComputedStyle(this.canvas);
    context.textBaseline = "middle";
    context.textAlign = "left";
    context.fillStyle = css("muted");
    context.font = `12px ${style.getPropertyValue("--sans")}`;
    if (left && above) context.fillText("output", 0, 10);
    if (left && below) context.fillText("input", 0, height - 10);
    left?.forEach((label, i) => context.fillText(label, 0, (y(i * band) + y((i + 1) * band - 1) + h) / 2));
    context.textAlign = "center";
    context.fillStyle = css("text");
    context.font = `${Math.max(9, Math.min(15, w))}px ${style.getPropertyValue("--mono")}`;
    for (let column = 0; column < count; column++) {
      const middle = begin + (column + 0.5) * w;
      if (above) context.fillText(above(column, count), middle, 10);
      if (below) context.fillText(below(column, count), middle, height - 10);
    }
  }

  /** Moves the cursor to a cell, or away. */
  point(cursor) {
    this.cursor = cursor;
    this.draw();
    this.options.point?.(...(cursor ?? []), this.shape?.count);
  }

  pointAt(event) {
    const { begin, count, w, h, y } = this.shape ?? this.layout();
    const box = this.canvas.getBoundingClientRect();
    const column = Math.floor((event.clientX - box.left - begin) / w);
    let row = 0;
    while (row < this.options.rows && event.clientY - box.top >= y(row) + h) row++;
    const inside = column >= 0 && column < count && row < this.options.rows;
    this.point(inside && event.clientY - box.top >= y(row) ? [row, column] : null);
  }

  onKey(event) {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    if (!move) return;
    event.preventDefault();
    const [row, column] = this.cursor ? this.cursor.map((x, i) => x + move[i]) : [0, 0];
    const within = (x, size) => Math.max(0, Math.min(size - 1, x));
    this.point([within(row, this.options.rows), within(column, this.layout().count)]);
  }
}

/** A list of bars: rows of {name, share}, where share is from 0 to 1. */
function showBars(list, rows) {
  while (list.children.length < rows.length) {
    const item = document.createElement("li");
    item.innerHTML = '<span class="name"></span><div class="track"><div></div></div><span class="value"></span>';
    list.append(item);
  }
  rows.forEach(({ name, share }, i) => {
    const [label, track, value] = list.children[i].children;
    label.textContent = name;
    track.firstChild.style.width = `${(100 * share).toFixed(1)}%`;
    value.textContent = `${(100 * share).toFixed(1)} %`;
  });
}

/** A figure with a caption and a canvas, appended to an element; returns the canvas. */
function appendFigure(parent, caption, label, attributes = {}) {
  const figure = document.createElement("figure");
  const title = document.createElement("figcaption");
  const canvas = document.createElement("canvas");
  title.textContent = caption;
  Object.entries({ role: "img", tabindex: "0", "aria-label": label, ...attributes })
    .forEach(([name, value]) => canvas.setAttribute(name, value));
  figure.append(title, canvas);
  parent.append(figure);
  return canvas;
}

/** The parts of a room by name: its elements with data-part. */
function partsOf(room) {
  return Object.fromEntries(Array.from(room.querySelectorAll("[data-part]"), (part) => [part.dataset.part, part]));
}
