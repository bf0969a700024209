// What the server told last, and one stream of what changes.

export const told = { history: [], map: null };
const listeners = new Set();
let mapListener = null;

export function onChange(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

export function onMap(listener) {
  mapListener = listener;
}

export async function ask(path) {
  const answer = await fetch(path, { headers: { accept: "application/json" } });
  if (answer.status === 401) location.assign("/login");
  const document = await answer.json();
  return answer.ok ? document : { error: document.error };
}

function tell() {
  for (const listener of listeners) listener(told);
}

function take(parts) {
  Object.assign(told, parts);
  if (parts.point) {
    if (told.history.at(-1)?.at_ms !== parts.point.at_ms) told.history.push(parts.point);
    told.history.splice(0, told.history.length - 600);
  }
  tell();
}

async function begin() {
  const state = await ask("/data/state");
  if (!state.error) take(state);
}

// A browser keeps at most six connections to one server, over all tabs: only a page that is shown
// has a stream. A page that was left may be kept in the browser's cache, with its stream.
export function connect(say) {
  let stream = null;
  const follow = () => {
    const isShown = document.visibilityState === "visible";
    if (isShown && stream === null) stream = open(say, retry);
    if (!isShown) leave();
  };
  const leave = () => {
    stream?.close();
    stream = null;
  };
  const retry = (refused) => {
    if (refused !== stream) return;
    leave();
    setTimeout(follow, 5000);
  };
  document.addEventListener("visibilitychange", follow);
  addEventListener("pagehide", leave);
  addEventListener("pageshow", follow);
  follow();
}

function open(say, retry) {
  const stream = new EventSource("/data/stream");
  let begun = false;
  stream.addEventListener("open", async () => {
    say(true);
    begun = false;
    try {
      await begin();
      await mapListener?.reload();
    } catch {
      say(false);
    }
    begun = true;
  });
  stream.addEventListener("error", () => {
    say(false);
    // A refusal ends an EventSource for good: try again, more slowly than it does by itself.
    if (stream.readyState === EventSource.CLOSED) retry(stream);
  });
  stream.addEventListener("state", (event) => {
    if (begun) take(JSON.parse(event.data));
  });
  stream.addEventListener("rows", (event) => mapListener?.patch(JSON.parse(event.data)));
  stream.addEventListener("map", (event) => {
    told.map = JSON.parse(event.data);
    mapListener?.reload();
  });
  return stream;
}
