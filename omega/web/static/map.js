// The map of machines: a canvas of small squares, one line that tells of one machine, and a legend.

import { h, percent, words } from "./dom.js";
import { told } from "./live.js";
import { ABOVE, FULL, LAYERS, NONE, STATES, machines } from "./mapdata.js";

const TITLES = { cpu: "CPU", memory: "Memory", disk: "Disk", gpu: "GPU", state: "State" };
const STATE_COLOURS = ["--map-open", "--map-drain", "--map-down", "--map-none"];
let wanted = "cpu";

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

function packed([red, green, blue]) {
  return (255 << 24) | (blue << 16) | (green << 8) | red;
}

function ofHex(hex) {
  const number = parseInt(hex.slice(1), 16);
  return packed([number >> 16, (number >> 8) & 255, number & 255]);
}

// All 256 colours of a layer, as the pixels of a canvas hold them.
function palette(layer) {
  const colours = new Uint32Array(256).fill(ofHex(colour("--map-none")));
  if (layer === 0) {
    STATE_COLOURS.forEach((name, state) => { colours[state] = ofHex(colour(name)); });
    return colours;
  }
  const stops = ["--map-0", "--map-1", "--map-2"].map((name) => colour(name).split(",").map(Number));
  for (let level = 0; level <= FULL; level += 1) {
    const place = (2 * level) / FULL, from = Math.min(1, Math.floor(place)), part = place - from;
    colours[level] = packed(stops[from].map((a, n) => Math.round(a + (stops[from + 1][n] - a) * part)));
  }
  colours[ABOVE] = ofHex(colour("--map-above"));
  return colours;
}

function ramp() {
  const canvas = h("canvas", { width: FULL + 1, height: 1, "aria-hidden": "true" });
  const context = canvas.getContext("2d"), image = context.createImageData(FULL + 1, 1);
  new Uint32Array(image.data.buffer).set(palette(1).subarray(0, FULL + 1));
  context.putImageData(image, 0, 0);
  return canvas;
}

function swatch(name, text) {
  const square = h("i");
  square.style.background = `var(${name})`;
  return h("span", {}, square, text);
}

export function mapView(open) {
  const canvas = h("canvas", {
    tabindex: "0", role: "application",
    "aria-label": "Map of machines. Arrow keys go from machine to machine, Enter opens one.",
    "aria-describedby": "told",
  });
  const mark = h("div", { class: "mark", hidden: true });
  const line = h("p", { id: "told", role: "status" });
  const legend = h("div", { class: "legend" });
  const choices = h("fieldset", {}, h("legend", {}, "Coloured by"));
  const context = canvas.getContext("2d", { alpha: false });
  let colours, image, pixels, size = 1, columns = 1, ratio = 1, at = -1, chosen = wanted;

  const HINT = "Point at a square, or go to the map with Tab and the arrow keys, to see which machine it is.";

  function choose() {
    const there = ["cpu", "memory", "disk", "gpu"].filter((name) => machines.has(LAYERS.indexOf(name)));
    const names = [...there, "state"];
    chosen = names.includes(wanted) ? wanted : names[0];
    if (choices.dataset.names !== names.join()) {
      choices.dataset.names = names.join();
      choices.replaceChildren(choices.firstChild, ...names.map((name) => h("label", { class: "choice" },
        h("input", { type: "radio", name: "layer", value: name, on: { change: () => { wanted = name; draw(); } } }),
        h("span", {}, TITLES[name]))));
    }
    choices.querySelector(`[value=${chosen}]`).checked = true;
  }

  function draw() {
    choose();
    const layer = LAYERS.indexOf(chosen), shown = machines.shown;
    colours = palette(layer);
    ratio = devicePixelRatio || 1;
    const width = Math.max(1, Math.floor(canvas.parentElement.clientWidth * ratio));
    const height = Math.floor(Math.min(420, Math.max(240, innerHeight * 0.45)) * ratio);
    size = Math.max(1, Math.min(Math.floor(22 * ratio), Math.floor(Math.sqrt((width * height) / Math.max(1, shown.length)))));
    columns = Math.max(1, Math.floor(width / size));
    canvas.width = width;
    canvas.height = Math.max(size, Math.ceil(shown.length / columns) * size);
    image = context.createImageData(canvas.width, canvas.height);
    pixels = new Uint32Array(image.data.buffer);
    pixels.fill(ofHex(colour("--bg")));
    for (let place = 0; place < shown.length; place += 1) fill(place, colours[machines.look(shown[place], layer)]);
    context.putImageData(image, 0, 0);
    told_();
    describe(layer);
  }

  function fill(place, paint) {
    const gap = size >= 4 * ratio ? Math.ceil(ratio) : 0;
    const left = (place % columns) * size, top = Math.floor(place / columns) * size;
    for (let y = top; y < top + size - gap; y += 1) {
      const row = y * canvas.width + left;
      pixels.fill(paint, row, row + size - gap);
    }
  }

  function repaint(changed) {
    if (changed === null || machines.shown.length !== machines.machines) { draw(); return; }
    const layer = LAYERS.indexOf(chosen);
    for (const place of changed) fill(place, colours[machines.look(place, layer)]);
    context.putImageData(image, 0, 0);
    if (changed.includes(machines.shown[at])) told_();
    if (layer === 0) describe(layer);
  }

  function describe(layer) {
    if (layer === 0) {
      const counted = [0, 0, 0, 0];
      for (const place of machines.shown) counted[machines.look(place, 0)] += 1;
      legend.replaceChildren(...STATES.slice(0, 3).map((name, state) =>
        swatch(STATE_COLOURS[state], `${name} ${counted[state].toLocaleString("en")}`)));
    } else {
      legend.replaceChildren(h("span", {}, "0 %", ramp(), "100 % in use"),
        swatch("--map-above", "more than it has"), swatch("--map-none", "has none"));
    }
  }

  async function told_() {
    const place = machines.shown[at];
    mark.hidden = place === undefined;
    if (place === undefined) { line.textContent = HINT; return; }
    const edge = size / ratio, shown = Math.max(edge, 7);
    Object.assign(mark.style, {
      width: `${shown + 4}px`, height: `${shown + 4}px`,
      left: `${(at % columns) * edge - 2 - (shown - edge) / 2}px`, top: `${Math.floor(at / columns) * edge - 2 - (shown - edge) / 2}px`,
    });
    const levels = LAYERS.slice(1).map((name, n) => [name, machines.look(place, n + 1)]).filter(([, level]) => level !== NONE);
    const use = levels.map(([name, level]) => `${TITLES[name]} ${level === ABOVE ? "more than it has" : percent(level / FULL)}`);
    const name = await machines.name(place, told.map?.names_per_block ?? 1000);
    if (machines.shown[at] !== place) return;
    line.textContent = `${name}: ${words(STATES[machines.look(place, 0)])}; in use: ${use.join(", ") || "nothing to use"}`;
  }

  function placeOf(event) {
    const edge = size / ratio, column = Math.floor(event.offsetX / edge);
    const place = Math.floor(event.offsetY / edge) * columns + column;
    return column < columns && place < machines.shown.length ? place : -1;
  }

  function go(place) {
    at = Math.max(0, Math.min(machines.shown.length - 1, place));
    told_();
  }

  canvas.addEventListener("pointermove", (event) => {
    const place = placeOf(event);
    if (place !== at) { at = place; told_(); }
  });
  canvas.addEventListener("pointerleave", () => { if (document.activeElement !== canvas) { at = -1; told_(); } });
  canvas.addEventListener("click", (event) => {
    const place = placeOf(event);
    if (place >= 0) open(machines.ids[machines.shown[place]]);
  });
  canvas.addEventListener("focus", () => { if (at < 0) go(0); });
  canvas.addEventListener("blur", () => { at = -1; told_(); });
  canvas.addEventListener("keydown", (event) => {
    const steps = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns };
    if (event.key in steps) go(at + steps[event.key]);
    else if (event.key === "Home") go(0);
    else if (event.key === "End") go(machines.shown.length - 1);
    else if (event.key === "Enter" && at >= 0) open(machines.ids[machines.shown[at]]);
    else return;
    event.preventDefault();
  });

  const sized = new ResizeObserver(() => draw());
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const view = h("div", {}, h("div", { class: "map-head" }, choices, legend), h("div", { class: "map" }, canvas, mark), line);
  return {
    view,
    begin() {
      machines.onChange = repaint;
      sized.observe(canvas.parentElement);
      dark.addEventListener("change", draw);
      draw();
    },
    end() {
      machines.onChange = null;
      sized.disconnect();
      dark.removeEventListener("change", draw);
    },
  };
}
