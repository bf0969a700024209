// Elements and figures. Every text from the cell reaches the page as a text node, never as markup.

export function h(name, attributes = {}, ...children) {
  const element = name.startsWith("svg:")
    ? document.createElementNS("http://www.w3.org/2000/svg", name.slice(4))
    : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key === "on") for (const [event, act] of Object.entries(value)) element.addEventListener(event, act);
    else if (key === "width%") element.style.width = `${value}%`;
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

export const DASH = "–";

export function count(number, digits = 0) {
  if (number === null || number === undefined) return DASH;
  return number.toLocaleString("en", { maximumFractionDigits: number !== 0 && Math.abs(number) < 10 ? Math.max(digits, 1) : digits });
}

export function percent(part) {
  if (part === null || part === undefined) return DASH;
  return part > 0 && part < 0.1 ? `${(part * 100).toFixed(1)} %` : `${Math.round(part * 100)} %`;
}

export function fraction(number) {
  return number === null || number === undefined ? DASH : number.toFixed(2);
}

export function duration(seconds) {
  if (seconds === null || seconds === undefined) return DASH;
  if (seconds < 0.9995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 10) return `${seconds.toFixed(1)} s`;
  if (seconds < 120) return `${Math.round(seconds)} s`;
  if (seconds < 7200) return `${Math.round(seconds / 60)} min`;
  if (seconds < 172800) return `${Math.round(seconds / 3600)} h`;
  return `${Math.round(seconds / 86400)} days`;
}

export function moment(ms) {
  return ms === null || ms === undefined ? DASH : new Date(ms).toLocaleString("en-GB");
}

export function ago(ms) {
  return ms === null || ms === undefined ? DASH : `${duration(Math.max(0, (Date.now() - ms) / 1000))} ago`;
}

export function amountOf(kind, amount) {
  if (amount === undefined || amount === null) return DASH;
  if (kind === "cpu_milli") return `${count(amount / 1000, 1)} cores`;
  if (kind.startsWith("gpu")) return `${count(amount / 1000, 2)} GPU`;
  const gib = amount / 1024;
  if (gib >= 1024) return `${count(gib / 1024, 1)} TiB`;
  return gib >= 1 ? `${count(gib, 1)} GiB` : `${count(amount)} MiB`;
}

export const KINDS = { cpu_milli: "CPU", memory_mib: "Memory", disk_mib: "Disk", gpu: "GPU" };

export function words(name) {
  return String(name).replaceAll("_", " ");
}

export function state(name) {
  return h("span", { class: `state ${name}` }, words(name));
}

export function bar(part) {
  const full = part !== null && part > 1;
  const width = Math.min(100, Math.max(0, (part ?? 0) * 100));
  return h("span", { class: full ? "bar full" : "bar", "aria-hidden": "true" }, h("i", { "width%": width }));
}

// columns: [title, class, cell of a row]. The first is the row's header.
export function table(caption, columns, rows, empty) {
  if (!rows.length) return h("p", { class: "empty" }, empty);
  return h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": caption },
    h("table", {},
      h("caption", { class: "hidden" }, caption),
      h("thead", {}, h("tr", {}, columns.map(([title, kind]) => h("th", { scope: "col", class: kind }, title)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, columns.map(([, kind, cell], place) => place
        ? h("td", { class: kind }, cell(row))
        : h("th", { scope: "row", class: kind }, cell(row))))))));
}

export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.filter(Boolean).map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

export function tiles(pairs) {
  return h("dl", { class: "tiles" }, pairs.map(([name, value, small]) =>
    h("div", { class: "tile" }, h("dt", {}, name), h("dd", {}, value, small ? h("span", { class: "small" }, small) : null))));
}

export function heading(text) {
  return h("h1", { tabindex: "-1" }, text);
}

// Redraws only if something changed, keeps where the reader had scrolled to, and where the focus was.
export function redraw(place, key, make) {
  if (place.dataset.key === key) return;
  place.dataset.key = key;
  const scrolled = [...place.querySelectorAll(".wide")].map((each) => each.scrollLeft);
  const focused = [...place.querySelectorAll("a, .wide")].indexOf(document.activeElement);
  place.replaceChildren(...[make()].flat().filter(Boolean));
  place.querySelectorAll(".wide").forEach((each, at) => { each.scrollLeft = scrolled[at] ?? 0; });
  if (focused >= 0) place.querySelectorAll("a, .wide")[focused]?.focus({ preventScroll: true });
}
