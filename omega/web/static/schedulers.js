// The schedulers: each replica's figures, and the matrix of who refused whom.

import { spark } from "./charts.js";
import { DASH, ago, count, duration, fraction, h, heading, percent, redraw, state, table, words } from "./dom.js";
import { onChange, told } from "./live.js";

const NOBODY = -1, UNKNOWN = -2, GANG = -3;
const OTHERWISE = { [UNKNOWN]: "not on record", [GANG]: "its gang broke", [NOBODY]: "no scheduler" };
const WORDS = {
  stale: "stale: the machine had changed since it was read", overcommit: "overcommit: the room was taken",
  precedence: "precedence: the tasks to evict may not be", gang_broken: "gang broken: too few of its tasks found room",
  lease_lost: "lease lost: another held the job by then", already_placed: "already placed", gone: "gone: no such machine",
  closed: "closed: the machine took no claims", quota: "quota: none was left",
};

export function schedulersTable({ schedulers, history }) {
  const name = (row) => `${row.kind} ${row.replica}`;
  const past = (row, at) => history.slice(-120).map((point) => point.schedulers[name(row)]?.[at] ?? null);
  return table("Schedulers", [
    ["Scheduler", "name", name],
    ["State", "", (row) => state(row.state)],
    ["Jobs/s", "n", (row) => count(row.jobs_per_second, 1)],
    ["Tasks/s", "n", (row) => count(row.tasks_per_second, 1)],
    ["Conflict fraction", "n", (row) => fraction(row.conflict_fraction)],
    ["Busy", "n", (row) => [spark(past(row, 0), 1, "busy over the last two minutes"), " ", percent(row.busyness)]],
    ["View age", "n", (row) => [spark(past(row, 1), null, "age of the view over the last two minutes"), " ", duration(row.view_age_s)]],
    ["Wait, half", "n", (row) => duration(row.wait_p50_s)],
    ["Wait, 9 in 10", "n", (row) => duration(row.wait_p90_s)],
  ], schedulers.rows, "No scheduler has been heard of. Start one: omega scheduler run batch");
}

// Sums the cells of a matrix, by row and column; `verdict` keeps one verdict only.
function summed(matrix, verdict) {
  const sums = new Map(), rows = new Map();
  for (const [loser, winner, why, claims] of matrix.cells) {
    if (verdict && why !== verdict) continue;
    const key = `${loser},${winner}`;
    const cell = sums.get(key) ?? { claims: 0, why: {} };
    cell.claims += claims;
    cell.why[why] = (cell.why[why] ?? 0) + claims;
    sums.set(key, cell);
    rows.set(loser, (rows.get(loser) ?? 0) + claims);
  }
  return { sums, rows };
}

function matrixTable(matrix, verdict, describe) {
  const names = matrix.names.map(([kind, replica]) => (replica ? `${kind} ${replica}` : kind));
  const { sums, rows } = summed(matrix, verdict);
  const most = Math.max(1, ...[...sums.values()].map((cell) => cell.claims));
  const columns = [...names.keys(), UNKNOWN, GANG, NOBODY];
  const title = (column) => names[column] ?? OTHERWISE[column];
  function cell(row, column) {
    const its = sums.get(`${row},${column}`);
    const kind = [its ? "" : "zero", row === column ? "self" : "", column === UNKNOWN ? "edge" : ""].join(" ").trim();
    if (!its) return h("td", { class: kind }, row === column ? "·" : "0");
    const why = Object.entries(its.why).sort((a, b) => b[1] - a[1]).map(([name, n]) => `${count(n)} ${words(name)}`).join(", ");
    const told_ = `${names[row]} was refused ${count(its.claims)} claims ${column < 0 ? `(${title(column)})` : `by ${title(column)}`}: ${why}`;
    const shown = h("td", { class: kind, tabindex: "0", "aria-label": told_, on: { focus: () => describe(told_), pointerenter: () => describe(told_) } }, count(its.claims));
    shown.style.backgroundColor = `rgba(var(--heat), ${(0.06 + 0.34 * Math.sqrt(its.claims / most)).toFixed(3)})`;
    return shown;
  }
  return h("div", { class: "wide", tabindex: "0", role: "region", "aria-label": "Who refused whom" },
    h("table", { class: "matrix" },
      h("caption", { class: "hidden" }, "Refused claims: rows were refused, columns had been granted"),
      h("thead", {},
        h("tr", {}, h("td", { rowspan: 2 }), h("th", { colspan: Math.max(1, names.length), scope: "colgroup" }, "had the machine before"),
          h("th", { colspan: 3, scope: "colgroup", class: "edge" }, "otherwise"), h("th", { colspan: 3, scope: "colgroup", class: "edge" }, "its claims")),
        h("tr", {}, columns.map((column) => h("th", { scope: "col", class: column === UNKNOWN ? "edge" : null }, title(column))),
          h("th", { scope: "col", class: "edge" }, "refused"), h("th", { scope: "col" }, "granted"), h("th", { scope: "col" }, "refused share"))),
      h("tbody", {}, names.map((name, row) => {
        const refused = rows.get(row) ?? 0, all = refused + matrix.granted[row];
        return h("tr", {}, h("th", { scope: "row" }, name), columns.map((column) => cell(row, column)),
          h("td", { class: "edge" }, count(refused)), h("td", {}, count(matrix.granted[row])), h("td", {}, all ? percent(refused / all) : DASH));
      }))));
}

function choice(label, name, options, chosen, change) {
  return h("fieldset", {}, h("legend", {}, label), options.map(([value, text]) => h("label", { class: "choice" },
    h("input", { type: "radio", name, value, checked: value === chosen, on: { change: () => change(value) } }), h("span", {}, text))));
}

export function schedulersPage(main) {
  const figures = h("div"), matrix = h("div"), line = h("p", { id: "told", role: "status" }), about = h("p", { class: "muted" });
  const how = { over: "recent", by: "replicas", verdict: "" };
  const pick = h("select", { id: "verdict", on: { change: (event) => { how.verdict = event.target.value; update(); } } });
  const set = (name) => (value) => { how[name] = value; update(); };
  const controls = h("div", { class: "map-head" },
    choice("Over", "over", [["recent", "10 minutes"], ["total", "all that was read"]], how.over, set("over")),
    choice("By", "by", [["replicas", "replica"], ["kinds", "kind"]], how.by, set("by")),
    h("span", {}, h("label", { for: "verdict", class: "muted" }, "Verdict "), pick));
  main.append(heading("Schedulers"), h("section", {}, figures),
    h("section", {}, h("h2", {}, "Who refused whom"),
      h("p", { class: "muted" }, "Each row is a scheduler whose claims were refused. The column is who had been granted the machine last, before it. ",
        "A framed square is a scheduler that met its own earlier claim."),
      controls, matrix, line, about));
  function update() {
    if (!told.conflicts) return;
    const { conflicts } = told;
    redraw(figures, JSON.stringify([told.schedulers, told.history.at(-1)?.at_ms]), () => schedulersTable(told));
    if (!pick.options.length) pick.append(h("option", { value: "" }, "any"), ...conflicts.verdicts.map((name) => h("option", { value: name }, WORDS[name] ?? words(name))));
    const shown = conflicts[how.over][how.by];
    redraw(matrix, JSON.stringify([shown, how]), () => (shown.names.length
      ? matrixTable(shown, how.verdict, (text) => { line.textContent = text; })
      : h("p", { class: "empty" }, "No claim was judged in this time. Submit a job: omega submit job.yaml")));
    if (!line.textContent) line.textContent = "Point at a number, or go there with Tab, to see why the claims were refused.";
    about.textContent = `${count(conflicts.transactions)} transactions were read, ${count(conflicts.conflicted)} of them conflicted.`
      + (conflicts.missed ? ` ${count(conflicts.missed)} times there were more commits than one read returns, so that some are not counted.` : "");
  }
  const off = onChange(update);
  update();
  return off;
}
