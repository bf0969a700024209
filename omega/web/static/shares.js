// Quotas, and what tenants have in the queue.

import { bar, count, h, heading, percent, redraw, table } from "./dom.js";
import { onChange, told } from "./live.js";

function tenants(lines) {
  const sums = new Map();
  for (const line of lines) {
    const its = sums.get(line.tenant) ?? { tenant: line.tenant, jobs: 0, unplaced: 0, parked: 0 };
    its.jobs += line.jobs;
    its.unplaced += line.unplaced;
    its.parked += line.state === "parked" ? line.jobs : 0;
    sums.set(line.tenant, its);
  }
  return [...sums.values()].sort((a, b) => b.jobs - a.jobs);
}

export function sharesPage(main) {
  const place = h("div");
  main.append(heading("Shares"), place);
  function draw() {
    const rows = told.quotas.flatMap((quota) => quota.budgets.map((budget) => ({ ...quota, ...budget, whose: `${quota.scope} ${quota.name}` })));
    return [
      h("section", {}, h("h2", {}, "Quotas"), table("Quotas", [
        ["Whose", "name", (row) => row.whose], ["Of", "", (row) => row.name],
        ["In use", "", (row) => [bar(row.part), percent(row.part)]],
        ["Used", "n", (row) => row.used], ["Left", "n", (row) => row.left], ["Limit", "n", (row) => row.limit],
        ["", "", (row) => (row.counted ? "" : "not counted yet: it grants nothing")],
      ], rows, "There are no quotas, so that any tenant may hold all there is. Set one: omega quota set --tenant research --cpu 100")),
      h("section", {}, h("h2", {}, "Tenants that wait"), table("Tenants", [
        ["Tenant", "name", (row) => h("a", { href: `/jobs?${new URLSearchParams({ tenant: row.tenant })}` }, row.tenant)],
        ["Jobs that wait", "n", (row) => count(row.jobs)], ["Parked", "n", (row) => count(row.parked)], ["Tasks without a place", "n", (row) => count(row.unplaced)],
      ], tenants(told.queue.lines), "No tenant's job waits.")),
    ];
  }
  const update = () => told.quotas && redraw(place, JSON.stringify([told.quotas, told.queue.lines]), draw);
  const off = onChange(update);
  update();
  return off;
}
