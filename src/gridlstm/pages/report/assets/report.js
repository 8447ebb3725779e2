// The curves of a report: one chart per part, drawn by uPlot from the data that the page holds.
"use strict";

const report = JSON.parse(document.getElementById("report").textContent);
const COLOURS = 8; // As in the style sheet; further curves are dashed.
const HEIGHT = 340;

const css = name => getComputedStyle(document.documentElement).getPropertyValue(name).trim();
const colour = index => css(`--c${index % COLOURS}`);
const shown = value => (value == null ? "" : String(Number(value.toPrecision(6))));

// What the reader has chosen survives the reloading of a live page.
const store = {
  key: `gridlstm report ${location.pathname}`,
  load() {
    try { return JSON.parse(sessionStorage.getItem(this.key)) || {}; } catch { return {}; }
  },
  save(part, chosen) {
    try { sessionStorage.setItem(this.key, JSON.stringify({ ...this.load(), [part]: chosen })); } catch { /* not allowed */ }
  },
};

class Chart {
  constructor(element) {
    this.element = element;
    this.part = element.dataset.part;
    this.data = report.parts[this.part];
    this.place = element.querySelector("[data-plot]");
    this.at = element.querySelector("[data-at]");
    this.values = [...element.querySelectorAll("[data-value]")];
    this.boxes = [...element.querySelectorAll("[data-series]")];
    const names = Object.keys(this.data.y);
    this.chosen = { x: "samples", y: names[0], log: this.data.log, hidden: [], ...store.load()[this.part] };
    if (!names.includes(this.chosen.y)) this.chosen.y = names[0];
    this.listen();
    this.draw();
  }

  listen() {
    const { element, chosen } = this;
    for (const axis of ["x", "y"]) {
      const select = element.querySelector(`[data-${axis}]`);
      select.value = chosen[axis];
      select.addEventListener("change", () => this.choose({ [axis]: select.value }));
    }
    this.log = element.querySelector("[data-log]");
    this.log.addEventListener("click", () => this.choose({ log: !chosen.log }));
    this.boxes.forEach((box, index) => {
      box.checked = !chosen.hidden.includes(index);
      box.addEventListener("change", () => this.show(index, box.checked));
    });
    for (const button of element.querySelectorAll("[data-all]"))
      button.addEventListener("click", () => this.boxes.forEach((box, index) => {
        box.checked = button.dataset.all === "true";
        this.show(index, box.checked);
      }));
    this.place.addEventListener("keydown", event => this.move(event));
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(this.place);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  choose(change) {
    Object.assign(this.chosen, change);
    store.save(this.part, this.chosen);
    this.draw();
  }

  show(index, visible) {
    this.chosen.hidden = this.boxes.flatMap((box, place) => (box.checked ? [] : [place]));
    store.save(this.part, this.chosen);
    this.plot.setSeries(index + 1, { show: visible });
    this.read();
  }

  size() {
    return { width: Math.max(200, this.place.clientWidth), height: HEIGHT };
  }

  // Columns of all runs on one horizontal axis; on a logarithmic one only positive values have a place.
  columns() {
    const { x, y, log } = this.chosen;
    const usable = value => value != null && (!log || value > 0);
    return uPlot.join(this.data.runs.map(run => {
      const points = run.x[x].map((at, row) => [at, run.y[y]?.[row]]).filter(([at]) => at != null);
      points.sort(([one], [other]) => one - other);
      return [points.map(([at]) => at), points.map(([, value]) => (usable(value) ? value : null))];
    }));
  }

  draw() {
    const { x, y, log, hidden } = this.chosen;
    this.log.setAttribute("aria-pressed", String(log));
    this.plot?.destroy();
    const axis = label => ({
      label, labelSize: 24, labelFont: "13px system-ui, sans-serif", font: "12px system-ui, sans-serif",
      stroke: css("--ink"), grid: { stroke: css("--line"), width: 1 }, ticks: { stroke: css("--line"), width: 1 },
    });
    const series = this.data.runs.map((run, index) => ({
      label: String(index), stroke: colour(index), width: 2, show: !hidden.includes(index),
      dash: index < COLOURS ? undefined : [8, 4], points: { size: 5, fill: colour(index) },
    }));
    this.plot = new uPlot({
      ...this.size(),
      scales: { x: { time: false }, y: { distr: log ? 3 : 1 } },
      axes: [axis(this.data.x[x]), { ...axis(this.data.y[y]), size: 62 }],
      series: [{}, ...series],
      legend: { show: false },
      cursor: { y: false, points: { size: 9 } },
      hooks: { setCursor: [() => this.read()] },
    }, this.columns(), this.place);
    this.read();
  }

  // Writes the values under the cursor, or else the last ones, into the legend.
  read() {
    if (!this.plot) return;
    const { data, cursor, series } = this.plot;
    const pointed = cursor.idx != null;
    this.at.textContent = pointed ? `${shown(data[0][cursor.idx])} (${this.data.x[this.chosen.x]})` : "the end";
    this.values.forEach((output, index) => {
      const column = data[index + 1];
      const last = column.findLastIndex(value => value != null);
      const row = pointed ? cursor.idxs[index + 1] : last;
      output.textContent = series[index + 1].show ? shown(row == null ? null : column[row]) : "";
    });
  }

  move(event) {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (event.key === "Escape") this.plot.setCursor({ left: -10, top: -10 });
    if (!step) return;
    event.preventDefault();
    const { data, cursor } = this.plot;
    const last = data[0].length - 1;
    const next = cursor.idx == null ? (step > 0 ? 0 : last) : Math.min(last, Math.max(0, cursor.idx + step));
    this.plot.setCursor({ left: this.plot.valToPos(data[0][next], "x"), top: 10 });
  }
}

const charts = [...document.querySelectorAll(".chart")].map(element => new Chart(element));
if (report.refresh) setTimeout(() => location.reload(), 1000 * report.refresh);
