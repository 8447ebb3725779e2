"use strict";
// The page: rooms behind tabs, each made when it is first shown, and the choice of colours.

const data = JSON.parse(document.getElementById("demo-data").textContent);

/** A network that is embedded in the page: its tensors by name, and the options of its run. */
function loadNetwork(name) {
  const { weights, options } = data.networks[name];
  return { tensors: readSafetensors(fromBase64(weights)), options };
}

const makeRoom = {
  write: (room) => new WriteRoom(room, loadNetwork("characters")),
  draw: (room) => new DrawRoom(room, loadNetwork("images"), data.digits),
  solve: (room) => new SolveRoom(room, loadNetwork("memorization")),
  translate: (room) => new TranslateRoom(room, loadNetwork("translation")),
};
const rooms = {};
const tabs = Array.from(document.querySelectorAll('[role="tab"]')).filter((tab) => {
  tab.hidden = !data.rooms.includes(tab.dataset.room);
  return !tab.hidden;
});

function showRoom(name) {
  for (const tab of tabs) {
    const selected = tab.dataset.room === name;
    tab.setAttribute("aria-selected", selected);
    tab.tabIndex = selected ? 0 : -1;
    document.getElementById(`room-${tab.dataset.room}`).hidden = !selected;
    if (!selected) rooms[tab.dataset.room]?.leave?.();
  }
  rooms[name] ??= makeRoom[name](document.getElementById(`room-${name}`));
}

tabs.forEach((tab, i) => {
  tab.addEventListener("click", () => {
    location.hash = tab.dataset.room;
    showRoom(tab.dataset.room);
  });
  tab.addEventListener("keydown", (event) => {
    const to = { ArrowLeft: i - 1, ArrowRight: i + 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    const next = tabs[(to + tabs.length) % tabs.length];
    next.focus();
    next.click();
  });
});
window.addEventListener("hashchange", openHash);

function openHash() {
  const name = location.hash.slice(1);
  showRoom(tabs.some((tab) => tab.dataset.room === name) ? name : tabs[0].dataset.room);
}

const prefersDark = window.matchMedia("(prefers-color-scheme: dark)");
const themeButton = document.getElementById("theme");
const isDark = () => (document.documentElement.dataset.theme ?? (prefersDark.matches ? "dark" : "light")) === "dark";

function themeChanged() {
  themeButton.setAttribute("aria-pressed", isDark());
  document.dispatchEvent(new Event("themechange"));
}

themeButton.addEventListener("click", () => {
  document.documentElement.dataset.theme = isDark() ? "light" : "dark";
  themeChanged();
});
prefersDark.addEventListener("change", themeChanged);

themeChanged();
openHash();
