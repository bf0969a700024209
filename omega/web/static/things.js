// One job, and one machine.

import { DASH, KINDS, ago, amountOf, bar, count, duration, facts, h, heading, moment, percent, redraw, state, table, words } from "./dom.js";
import { ask } from "./live.js";

function amounts(named) {
  return Object.entries(named).filter(([, amount]) => amount).map(([kind, amount]) => amountOf(kind, amount)).join(", ") || DASH;
}

function page(main, path, title, draw) {
  const place = h("div");
  main.append(place);
  async function update() {
    let found;
    try { found = await ask(path); } catch { return; }
    redraw(place, `${JSON.stringify(found)}${Math.floor(Date.now() / 5000)}`, () => (found.error
      ? [heading(title), h("p", { class: "empty" }, found.error)] : draw(found)));
  }
  update();
  const again = setInterval(update, 2000);
  return () => clearInterval(again);
}

function ended(exit) {
  const how = exit.signal === null ? (exit.code === null ? "" : `code ${exit.code}`) : `signal ${exit.signal}`;
  return [words(exit.cause), how].filter(Boolean).join(", ");
}

function output(job, { task, stream, bytes }) {
  const text = h("pre", { tabindex: "0", "aria-label": `${stream} of task ${task}` }, "…");
  return h("details", { on: { toggle: async (event) => {
    if (!event.target.open) return;
    const found = await ask(`/data/output/${job}/${task}/${stream}`);
    text.textContent = found.error ?? found.text;
  } } }, h("summary", {}, `task ${task}, ${stream}, ${count(bytes)} bytes`), text);
}

function jobsNamed(event) {
  const numbers = [event.places.map((it) => it.job), event.for_jobs, event.conflicts.map((it) => it.taken_for)].flat();
  return [...new Set(numbers)].filter((it) => it !== null).slice(0, 5).map((it) => [h("a", { href: `/job/${it}` }, String(it)), " "]);
}

// What happened, in time. It is searched for in the history, and so it is asked for seldom.
function story(place, path) {
  const show = (found) => [h("h2", {}, "What happened when"), ...(found.error ? [h("p", { class: "empty" }, found.error)] : [
    found.left_out ? h("p", { class: "muted" }, `${count(found.left_out)} earlier events are left out.`) : null,
    table("What happened when", [["When", "", (it) => moment(it.at_ms)], ["What", "", (it) => words(it.what)], ["Told", "name", (it) => it.told],
      ["By", "name", (it) => it.by ?? ""], ["Jobs", "", jobsNamed], ["", "n", (it) => ago(it.until_ms)]], found.events, "Nothing is on record."),
    ...found.not_told.map((said) => h("p", { class: "muted" }, said))])];
  async function update() {
    let found;
    try { found = await ask(path); } catch { return; }
    redraw(place, JSON.stringify(found), () => show(found));
  }
  update();
  return setInterval(update, 10000);
}

function places(job) {
  const rows = job.places;
  if (!rows.length) return h("p", { class: "empty" }, "None of its tasks runs now.");
  const more = job.placed - job.ended - rows.length;
  return [h("ul", { class: "places" }, rows.map((row) => h("li", {}, h("span", { class: "muted" }, `task ${row.task}`), " ",
    row.id ? h("a", { href: `/machine/${row.id}` }, row.machine) : row.machine))),
  more > 0 ? h("p", { class: "muted" }, `and ${count(more)} more; all of them: omega job ${job.id}`) : null];
}

export function jobPage(main, go, number) {
  const [told, outputs] = [h("section"), h("section")];
  const again = story(told, `/data/story/job/${number}`);
  const shown = new Set();
  function addOutputs(all) {  // those that are there stay as they are: somebody may have opened them
    for (const each of all.filter((it) => !shown.has(`${it.task} ${it.stream}`))) {
      if (!shown.size) outputs.append(h("h2", {}, "What its tasks wrote"));
      shown.add(`${each.task} ${each.stream}`);
      outputs.append(output(number, each));
    }
  }
  const end = page(main, `/data/job/${number}`, `Job ${number}`, (job) => [
    heading(`Job ${job.id}: ${job.name}`),
    job.why ? h("div", { class: "reason" }, h("b", {}, words(job.why.reason)), h("span", {}, `${job.why.evidence} `), h("span", { class: "muted" }, job.why.next_step)) : null,
    facts([["State", state(job.state)], ["Tenant", job.tenant], ["Kind of scheduler", job.scheduler], ["Precedence", count(job.precedence)],
      ["Tasks", `${count(job.tasks)}, of which ${count(job.placed - job.ended)} run, ${count(job.tasks - job.placed)} have no place, ${count(job.ended)} ended, ${count(job.failed)} failed`],
      job.minimum ? ["Gang", `at least ${count(job.minimum)} tasks together`] : null,
      ["Attempts", `${count(job.attempts)}; the last ${count(job.fruitless)} placed nothing`],
      job.progress ? ["Steps", [bar(job.progress.done / job.progress.steps), `${count(job.progress.done)} of ${count(job.progress.steps)}`]] : null,
      job.helpers.length ? ["Helpers", count(job.helpers.reduce((sum, each) => sum + each.running, 0))] : null]),
    h("section", {}, h("h2", {}, "Where its tasks run"),
      places(job)),
    job.exits.length ? h("section", {}, h("h2", {}, "How programs ended"),
      table("Exits", [["Task", "", (exit) => String(exit.task)], ["Machine", "name", (exit) => exit.machine], ["How", "name", ended],
        ["Why", "name", (exit) => exit.detail ?? ""], ["When", "n", (exit) => ago(exit.ended_ms)]], job.exits, "")) : null,
    told,
    (addOutputs(job.outputs ?? []), outputs),
  ]);
  return () => { clearInterval(again); end(); };
}

export function machinePage(main, go, number) {
  const told = h("section");
  const again = story(told, `/data/story/machine/${number}`);
  const end = page(main, `/data/machine/${number}`, `Machine ${number}`, (it) => [
    heading(`Machine ${it.machine}`),
    facts([["State", state(it.state)], ["Tasks", count(it.tasks)], ["Changes", `sequence ${count(it.sequence)}, revision ${count(it.revision)}`],
      it.notice ? ["Notice", `${amounts(it.notice.excess)} too much in use; ${it.notice.ends_in_ms > 0 ? `tasks end in ${duration(it.notice.ends_in_ms / 1000)}` : "over"}`] : null]),
    h("section", {}, h("h2", {}, "Use"), table("Use by kind", [
      ["Kind", "", (kind) => KINDS[kind] ?? words(kind)],
      ["In use", "", (kind) => [bar(it.used[kind] / it.capacity[kind]), percent(it.capacity[kind] ? it.used[kind] / it.capacity[kind] : null)]],
      ["Used", "n", (kind) => amountOf(kind, it.used[kind])], ["Free", "n", (kind) => amountOf(kind, it.free[kind])], ["Of", "n", (kind) => amountOf(kind, it.capacity[kind])],
    ], Object.keys(it.capacity), "It has nothing that tasks could use.")),
    Object.keys(it.attributes).length ? h("section", {}, h("h2", {}, "Attributes"), facts(Object.entries(it.attributes))) : null,
    h("section", {}, h("h2", {}, "Tasks, in the order in which they would be ended"),
      table("Tasks", [["Job", "", (row) => h("a", { href: `/job/${row.job}` }, String(row.job))], ["Name", "name", (row) => row.name], ["Task", "n", (row) => String(row.task)],
        ["Precedence", "n", (row) => count(row.precedence)], ["Tenant", "name", (row) => row.tenant], ["Kind", "name", (row) => row.scheduler],
        ["Holds", "name", (row) => amounts(row.amounts)], ["Began", "n", (row) => ago(row.started_ms)]], it.places, "Nothing runs here.")),
    told,
  ]);
  return () => { clearInterval(again); end(); };
}
