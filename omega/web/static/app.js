// Which page is shown, and whether what it shows is fresh.

import { cellPage } from "./cell.js";
import { h, heading } from "./dom.js";
import { ask, connect, onChange, onMap, told } from "./live.js";
import { machines } from "./mapdata.js";
import { jobsPage, queuePage } from "./queue.js";
import { schedulersPage } from "./schedulers.js";
import { sharesPage } from "./shares.js";
import { jobPage, machinePage } from "./things.js";

const PAGES = [
  [/^\/$/, "Cell", cellPage], [/^\/queue$/, "Queue", queuePage], [/^\/jobs$/, "Jobs", jobsPage], [/^\/job\/(\d+)$/, "Job", jobPage],
  [/^\/machine\/(\d+)$/, "Machine", machinePage], [/^\/schedulers$/, "Schedulers", schedulersPage], [/^\/shares$/, "Shares", sharesPage],
];
const main = document.getElementById("main");
const status = document.getElementById("status");
const away = document.getElementById("away");
let end = null;

function show({ focus = true } = {}) {
  end?.();
  end = null;
  main.replaceChildren();
  const [found, title, page] = PAGES.map(([path, ...rest]) => [location.pathname.match(path), ...rest]).find(([match]) => match) ?? [];
  for (const link of document.querySelectorAll("nav a")) {
    const here = new URL(link.href).pathname === location.pathname || (title === "Job" && link.pathname === "/jobs");
    if (here) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
  }
  document.title = `${title ?? "Not here"}${found?.[1] ? ` ${found[1]}` : ""}: Omega`;
  if (page) end = page(main, go, found[1]);
  else main.append(heading("There is no such page"));
  if (focus) main.focus();
}

function go(address) {
  history.pushState(null, "", address);
  show();
  scrollTo(0, 0);
}

document.addEventListener("click", (event) => {
  const link = event.target.closest?.("a[href]");
  if (!link || event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  if (link.origin !== location.origin || link.getAttribute("href").startsWith("#")) return;
  event.preventDefault();
  go(link.pathname + link.search);
});
addEventListener("popstate", () => show());

document.getElementById("find").addEventListener("submit", async (event) => {
  event.preventDefault();
  const text = document.getElementById("find-text").value.trim();
  if (!text) return;
  const found = await ask(`/data/find?${new URLSearchParams({ text })}`);
  if (found.job) go(`/job/${found.job}`);
  else if (found.machine) go(`/machine/${found.machine}`);
  else {
    end?.();
    end = null;
    main.replaceChildren(heading("Nothing found"), h("p", { class: "empty" }, found.error ?? `No job and no machine is called ${text}.`));
    main.focus();
  }
});

function fresh() {
  const since = told.away?.since;
  away.hidden = !since;
  if (since) away.textContent = `Database away since ${new Date(since).toLocaleTimeString("en-GB")}. What is shown is from before.`;
  if (told.point) status.textContent = `${since ? "as of" : "live"} ${new Date(told.point.at_ms).toLocaleTimeString("en-GB")}`;
  status.classList.toggle("off", Boolean(since));
}

onChange(fresh);
onMap(machines);
connect((up) => {
  status.classList.toggle("off", !up);
  if (!up) status.textContent = "no connection: trying again";
});
show({ focus: false });
