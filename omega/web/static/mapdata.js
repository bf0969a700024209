// The machines as the server sends them: a state and four levels each, and deltas between versions.

export const LAYERS = ["state", "cpu", "memory", "disk", "gpu"];
export const FULL = 200, ABOVE = 254, NONE = 255, GONE = 3;
export const STATES = ["open", "draining", "down", "gone"];

function bytes(text) {
  return Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
}

class MapData {
  constructor() {
    this.machines = 0;
    this.number = this.version = -1;
    this.width = LAYERS.length;
    this.ids = new Uint32Array(0);
    this.looks = new Uint8Array(0);
    this.shown = new Uint32Array(0); // positions of the machines that have not left
    this.waiting = null; // deltas that arrive while the map is read
    this.names = new Map(); // by block
    this.onChange = null;
  }

  async reload() {
    if (this.waiting) { this.again = true; return; }
    do {
      this.again = false;
      this.waiting = [];
      try {
        this.take(await (await fetch("/data/map")).arrayBuffer());
      } finally {
        const deltas = this.waiting;
        this.waiting = null;
        deltas.forEach((delta) => this.patch(delta, true));
      }
    } while (this.again);
    this.onChange?.(null);
  }

  take(buffer) {
    if (buffer.byteLength < 16) return;
    const [machines, number, version, width] = new Uint32Array(buffer, 0, 4);
    if (number !== this.number) this.names.clear();
    Object.assign(this, { machines, number, version, width });
    this.ids = new Uint32Array(buffer, 16, machines);
    this.looks = new Uint8Array(buffer, 16 + 4 * machines);
    this.sift();
  }

  sift() {
    const shown = [];
    for (let at = 0; at < this.machines; at += 1) if (this.looks[at * this.width] !== GONE) shown.push(at);
    this.shown = Uint32Array.from(shown);
  }

  patch(delta, quietly = false) {
    if (this.waiting) { this.waiting.push(delta); return; }
    if (delta.map !== this.number || delta.version <= this.version) return;
    if (delta.version !== this.version + 1) { this.reload(); return; }
    const at = new Uint32Array(bytes(delta.at).buffer), looks = bytes(delta.looks);
    let left = false;
    at.forEach((place, n) => {
      const look = looks.subarray(n * this.width, (n + 1) * this.width);
      left ||= (look[0] === GONE) !== (this.looks[place * this.width] === GONE);
      this.looks.set(look, place * this.width);
    });
    this.version = delta.version;
    if (left) this.sift();
    if (!quietly) this.onChange?.(left ? null : at);
  }

  look(at, layer) {
    return this.looks[at * this.width + layer];
  }

  has(layer) {
    for (const at of this.shown) if (this.look(at, layer) !== NONE) return true;
    return false;
  }

  async name(at, perBlock) {
    const block = Math.floor(at / perBlock), number = this.number;
    if (!this.names.has(block)) {
      this.names.set(block, fetch(`/data/names/${block}`).then((answer) => answer.json()).catch(() => []));
    }
    const names = await this.names.get(block);
    return number === this.number ? names[at % perBlock] ?? "" : "";
  }
}

export const machines = new MapData();
