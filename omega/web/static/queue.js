// The queue in sums, and lists of jobs.

import { DASH, ago, count, h, heading, redraw, state, table, tiles, words } from "./dom.js";
import { ask, onChange, told } from "./live.js";

export function queuePage(main) {
  const place = h("div");
  main.append(heading("Queue"), place);
  function draw() {
    const { queue } = told;
    const link = (line) => `/jobs?${new URLSearchParams({ state: line.state, kind: line.scheduler, tenant: line.tenant })}`;
    return [
      tiles([["Pending", count(queue.jobs.pending ?? 0), "jobs"], ["Being planned", count(queue.jobs.planning ?? 0), "jobs"],
        ["Parked", count(queue.jobs.parked ?? 0), "jobs"], ["Tasks without a place", count(queue.unplaced)]]),
      h("section", {}, h("h2", {}, "Why jobs are parked"),
        table("Reasons, the most frequent first", [
          ["Reason", "name", (row) => words(row.reason)], ["Jobs", "n", (row) => count(row.jobs)], ["What to do", "name", (row) => row.next_step],
        ], queue.parked, "No job is parked.")),
      h("section", {}, h("h2", {}, "By kind and tenant"),
        table("Jobs that wait", [
          ["Tenant", "name", (line) => line.tenant], ["Kind", "name", (line) => line.scheduler],
          ["State", "", (line) => [state(line.state), line.reason ? ` ${words(line.reason)}` : ""]],
          ["Jobs", "n", (line) => h("a", { href: link(line) }, count(line.jobs))], ["Tasks", "n", (line) => count(line.unplaced)],
          ["Oldest", "n", (line) => ago(line.oldest_ms)],
        ], queue.lines, "Nothing waits. Submit a job: omega submit job.yaml")),
    ];
  }
  const update = () => told.queue && redraw(place, `${JSON.stringify(told.queue)}${Math.floor(Date.now() / 5000)}`, draw);
  const off = onChange(update);
  update();
  return off;
}

const STATES = ["pending", "planning", "parked", "running", "succeeded", "failed", "cancelled"];

export function jobsPage(main, go) {
  const place = h("div"), asked = new URLSearchParams(location.search);
  const field = (name, label) => h("label", {}, label, h("input", { name, value: asked.get(name) ?? "", maxlength: 200, autocomplete: "off" }));
  const form = h("form", { class: "filters", on: { submit: (event) => {
    event.preventDefault();
    const chosen = [...new FormData(form)].filter(([, value]) => value);
    go(`/jobs?${new URLSearchParams(chosen)}`);
  } } },
  h("label", {}, "State", h("select", { name: "state" }, h("option", { value: "" }, "any"),
    STATES.map((name) => h("option", { value: name, selected: asked.get("state") === name }, name)))),
  field("kind", "Kind of scheduler"), field("tenant", "Tenant"), field("name", "Name"), h("button", {}, "Show"));
  main.append(heading("Jobs"), form, place);
  async function update() {
    const found = await ask(`/data/jobs?${asked}`);
    if (found.error) { redraw(place, found.error, () => h("p", { class: "empty" }, found.error)); return; }
    redraw(place, `${JSON.stringify(found)}${Math.floor(Date.now() / 5000)}`, () => [
      found.among ? h("p", { class: "muted" }, `Among the newest ${count(found.among)}.`) : null,
      table("Jobs, newest first", [
        ["Job", "", (job) => h("a", { href: `/job/${job.id}` }, String(job.id))], ["Name", "name", (job) => job.name],
        ["Tenant", "name", (job) => job.tenant], ["Kind", "name", (job) => job.scheduler], ["State", "", (job) => [state(job.state), job.park_reason ? ` ${words(job.park_reason)}` : ""]],
        ["Placed", "n", (job) => `${count(job.placed)} of ${count(job.tasks)}`], ["Ended", "n", (job) => count(job.ended)],
        ["Precedence", "n", (job) => count(job.precedence)], ["Submitted", "n", (job) => ago(job.submitted_ms)],
      ], found.rows, asked.size ? "No job is like this. Leave a field empty to see more." : "There are no jobs yet. Submit one: omega submit job.yaml")]);
  }
  update();
  const again = setInterval(update, 2000);
  return () => clearInterval(again);
}
