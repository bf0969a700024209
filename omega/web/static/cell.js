// The cell: figures, the map of machines, and the last ten minutes.

import { chart } from "./charts.js";
import { KINDS, bar, count, fraction, h, heading, percent, redraw, amountOf, table, tiles } from "./dom.js";
import { onChange, told } from "./live.js";
import { mapView } from "./map.js";
import { schedulersTable } from "./schedulers.js";

function figures() {
  const { cell, schedulers, queue } = told;
  const jobs = cell.jobs_by_state;
  const parked = queue.parked[0];
  return tiles([
    ["Machines open", count(cell.open), `of ${count(cell.machines)}`],
    ["Tasks running", count(cell.live_allocations)],
    ["Jobs waiting", count((jobs.pending ?? 0) + (jobs.planning ?? 0)), `${count(jobs.planning ?? 0)} being planned`],
    ["Jobs parked", count(jobs.parked ?? 0), parked ? `most: ${parked.reason.replaceAll("_", " ")}` : null],
    ["Conflict fraction", fraction(schedulers.all?.conflict_fraction), "last 10 s"],
    ["Tasks placed", count(schedulers.all?.tasks_per_second, 1), "a second"],
  ]);
}

function use() {
  const { cell } = told;
  const gpu = (amounts) => Object.entries(amounts).filter(([kind]) => kind.startsWith("gpu")).reduce((sum, [, n]) => sum + n, 0);
  const of = (amounts, kind) => (kind === "gpu" ? gpu(amounts) : amounts[kind]);
  const rows = Object.keys(KINDS).filter((kind) => of(cell.capacity, kind));
  return table("Use by kind", [
    ["Kind", "", (kind) => KINDS[kind]],
    ["In use", "", (kind) => [bar(of(cell.used, kind) / of(cell.capacity, kind)), percent(of(cell.used, kind) / of(cell.capacity, kind))]],
    ["Used", "n", (kind) => amountOf(kind, of(cell.used, kind))],
    ["Of", "n", (kind) => amountOf(kind, of(cell.capacity, kind))],
  ], rows, "This cell has no machines yet. Load some: omega cell load synthetic:1000");
}

export function cellPage(main, go) {
  const top = h("div"), sums = h("section"), schedulers = h("div");
  const map = mapView((machine) => go(`/machine/${machine}`));
  const charts = [
    chart("Use", [["CPU", "cpu", (p) => p.use_cpu_milli], ["Memory", "memory", (p) => p.use_memory_mib],
      ["Disk", "disk", (p) => p.use_disk_mib], ["GPU", "gpu", (p) => p.use_gpu]], percent, 1),
    chart("Conflict fraction", [["for each clean one", "plain", (p) => p.conflict_fraction]], fraction),
    chart("Queue", [["waiting", "cpu", (p) => p.waiting], ["parked", "memory", (p) => p.parked]], (n) => count(n)),
    chart("Tasks placed a second", [["of all schedulers", "plain", (p) => p.tasks_per_second]], (n) => count(n, 1)),
  ];
  main.append(heading("Cell"), top,
    h("section", { "aria-labelledby": "map-title" }, h("h2", { id: "map-title" }, "Machines"), map.view),
    sums,
    h("section", {}, h("h2", {}, "Last minutes"), h("div", { class: "charts" }, charts.map(({ figure }) => figure))),
    h("section", {}, h("h2", {}, "Schedulers"), schedulers));
  function update() {
    if (!told.cell) return;
    redraw(top, JSON.stringify([told.cell, told.schedulers, told.queue.parked]), figures);
    redraw(sums, JSON.stringify([told.cell.used, told.cell.capacity]), use);
    redraw(schedulers, JSON.stringify([told.schedulers, told.history.at(-1)?.at_ms]), () => schedulersTable(told));
    charts.forEach((each) => each.update(told.history));
  }
  const off = onChange(update);
  map.begin();
  update();
  return () => { off(); map.end(); };
}
