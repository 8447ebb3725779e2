"use strict";
// The room in which a sentence is translated, and the pictures of what each word is read from.

const BEAM = 5;
const EXAMPLES = ["我想喝水。", "他不喜欢吃鱼。", "你叫什么名字？", "我们明天去学校。", "她昨天买了一本书。"];

class TranslateRoom {
  constructor(room, network) {
    this.parts = partsOf(room);
    this.model = new Reencoder(network);
    this.maps = [];
    const { form, samples } = this.parts;
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      this.translate(form.sentence.value);
    });
    for (const sentence of EXAMPLES) {
      const button = Object.assign(document.createElement("button"), { type: "button", textContent: sentence, lang: "zh" });
      button.addEventListener("click", () => {
        form.sentence.value = sentence;
        this.translate(sentence);
      });
      samples.append(button);
    }
    this.translate(form.sentence.value);
  }

  /** Translates a sentence and shows the result; a later call replaces an earlier one. */
  async translate(sentence) {
    const source = this.model.split(sentence);
    const call = (this.call = Symbol());
    if (!source.length) {
      this.parts.translation.textContent = "Type a sentence.";
      return;
    }
    this.parts.translation.textContent = "…";
    const abandoned = new Error("abandoned");
    const pause = () => new Promise((resolve, reject) =>
      setTimeout(() => (this.call === call ? resolve() : reject(abandoned))));
    try {
      this.show(source, await beamSearch(this.model, this.model.encode(source), BEAM, pause));
    } catch (error) {
      if (error !== abandoned) throw error;
    }
  }

  show(source, { words, alignment }) {
    const target = this.model.decode(words);
    this.parts.translation.textContent = joinWords(target);
    const rows = [...target, "(end)"];
    this.parts.maps.replaceChildren();
    alignment[0]?.forEach((_, layer) => {
      const way = layer % 2 ? "backwards" : "forwards";
      const canvas = appendFigure(this.parts.maps, `Grid ${layer + 1}, ${way}`,
        `Grid ${layer + 1}: how much each Chinese character changes the memory behind each English word`);
      const largest = Math.max(...alignment.flatMap((row) => [...row[layer]]));
      new Heatmap(canvas, {
        rows: rows.length,
        columns: source.length,
        cell: 24,
        band: 1,
        kind: "positive",
        left: rows.map((word) => (word.length > 8 ? `${word.slice(0, 7)}…` : word)),
        below: (column) => source[column],
        value: (row, column) => alignment[row][layer][column] / largest,
        point: (row, column) => {
          this.parts.readout.textContent = row === undefined ? "" :
            `“${source[column]}” to “${rows[row]}” in grid ${layer + 1}: change of memory ${alignment[row][layer][column].toFixed(2)}`;
        },
      });
    });
  }
}
