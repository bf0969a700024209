// Small charts of the last ten minutes: lines that differ by colour, dashes and a key with the latest value.

import { DASH, h } from "./dom.js";

const HEIGHT = 130, LEFT = 44, RIGHT = 6, TOP = 8, BOTTOM = 18;

function nice(highest) {
  if (highest <= 0) return 1;
  const step = 10 ** Math.floor(Math.log10(highest));
  return [1, 2, 5, 10].map((factor) => factor * step).find((limit) => limit >= highest * 0.999);
}

// lines: [name, class, value of a point]; `write` writes a value; `highest` fixes the axis.
export function chart(title, lines, write, highest = null) {
  const key = h("figcaption", {}, h("b", {}, title));
  const plot = h("svg:svg", { class: "plot", role: "img" });
  const figure = h("figure", { class: "chart" }, key, plot);
  const values = lines.map(([name, kind]) => {
    const value = h("span", {}, DASH);
    key.append(h("span", { class: "key" },
      h("svg:svg", { viewBox: "0 0 22 8", "aria-hidden": "true" }, h("svg:line", { x1: 0, x2: 22, y1: 4, y2: 4, class: `stroke ${kind}` })),
      `${name} `, value));
    return value;
  });

  function update(points) {
    const width = Math.max(120, plot.clientWidth || 400);
    const series = lines.map(([, , of]) => points.map(of));
    const top = highest ?? nice(Math.max(0, ...series.flat().filter((value) => value !== null && value !== undefined)));
    const last = points.at(-1)?.at_ms ?? 0, span = Math.max(60000, last - (points[0]?.at_ms ?? last));
    const x = (point) => LEFT + (width - LEFT - RIGHT) * (1 - (last - point.at_ms) / span);
    const y = (value) => HEIGHT - BOTTOM - (HEIGHT - TOP - BOTTOM) * Math.min(1, value / top);
    const drawn = [];
    for (const part of [0, 0.5, 1]) {
      drawn.push(h("svg:line", { class: "grid", x1: LEFT, x2: width - RIGHT, y1: y(part * top), y2: y(part * top) }));
      drawn.push(h("svg:text", { x: LEFT - 6, y: y(part * top) + 4, "text-anchor": "end" }, write(part * top)));
    }
    drawn.push(h("svg:text", { x: LEFT, y: HEIGHT - 4 }, span >= 119000 ? `${Math.round(span / 60000)} min ago` : `${Math.round(span / 1000)} s ago`));
    drawn.push(h("svg:text", { x: width - RIGHT, y: HEIGHT - 4, "text-anchor": "end" }, "now"));
    series.forEach((its, line) => {
      const run = [];
      points.forEach((point, at) => {
        if (its[at] !== null && its[at] !== undefined) run.push(`${x(point).toFixed(1)},${y(its[at]).toFixed(1)}`);
      });
      drawn.push(h("svg:polyline", { class: lines[line][1], points: run.join(" ") }));
      values[line].textContent = its.length ? write(its.at(-1)) : DASH;
    });
    plot.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
    plot.setAttribute("aria-label", `${title}: ${lines.map(([name], line) => `${name} ${values[line].textContent}`).join(", ")}`);
    plot.replaceChildren(...drawn);
  }
  return { figure, update };
}

// A line as high as its text, for a row of a table.
export function spark(values, highest, label) {
  const known = values.map((value, at) => [at, value]).filter(([, value]) => value !== null && value !== undefined);
  const top = highest ?? Math.max(1e-9, ...known.map(([, value]) => value));
  const points = known.map(([at, value]) =>
    `${((90 * at) / Math.max(1, values.length - 1)).toFixed(1)},${(18 - 16 * Math.min(1, value / top)).toFixed(1)}`);
  return h("svg:svg", { class: "spark", viewBox: "0 0 90 20", role: "img", "aria-label": label },
    h("svg:polyline", { class: "cpu", points: points.join(" ") }));
}
