const meta = JSON.parse(document.getElementById("data").textContent);
const raw = (text => {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const characters = atob(text), bytes = new Uint8Array(characters.length);
  for (let i = 0; i < bytes.length; i++) bytes[i] = characters.charCodeAt(i);
  return bytes;
})(document.getElementById("columns").textContent.trim());
// Columns of items, then of waits, each as long as the number says.
const types = { UInt8: Uint8Array, UInt16: Uint16Array, UInt32: Uint32Array, Double: Float64Array };
let place = 0, columns = 0;
function column(count) {
  const Type = types[meta.types[columns++]], result = new Type(raw.buffer, place, count);
  place += Math.ceil(count * Type.BYTES_PER_ELEMENT / 8) * 8;
  return result;
}
const n = meta.items, w = meta.waits;
// 0: no submission, no submitter; otherwise one more than the time or place.
const start = column(n), end = column(n), submission = column(n), delay = column(n), submitting = column(n);
const fn = column(n), thread = column(n), submitThread = column(n), queue = column(n), lane = column(n), depth = column(n);
const waitStart = column(w), waitEnd = column(w), waitThread = column(w), waitName = column(w), waitDepth = column(w);

const element = (name, text) => { const made = document.createElement(name); made.textContent = text; return made; };
const unit = ns => {
  const steps = [[1e9, "s"], [1e6, "ms"], [1e3, "\u00b5s"], [1, "ns"]];
  const [size, name] = steps.find(([size]) => Math.abs(ns) >= size) || steps[3];
  return (ns / size).toPrecision(3).replace(/e\+(\d+)/, "") + " " + name;
};
const counted = (count, noun) => `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
// The command writes its sentences for terminals.
const prose = text => text.replace(/(\d) us\b/g, "$1 \u00b5s");
document.title = meta.program + " \u2013 Concourse trace";
const title = document.querySelector("h1");
title.textContent = meta.program;
title.append(element("small", `${meta.process ? `process ${meta.process} \u00b7 ` : ""}${counted(n, "item")} in ${unit(meta.duration)}`
  + (meta.lost ? ` \u00b7 ${counted(meta.lost, "event")} lost` : "")));
document.getElementById("reason").textContent = prose(meta.reason);
document.getElementById("notice").textContent = meta.notice;
for (const [name, text] of meta.verdict) {
  const card = element("div", "");
  card.append(element("b", name), prose(text));
  document.getElementById("verdict").append(card);
}

// Tracks: threads with as many rows as items nest, then queues with as many as overlap.
const tracks = [], rowOfThread = [], rowOfQueue = [];
const rowHeight = 18, gap = 8, left = 200, top = 24, headings = [];
let y = top;
function add(name, rows, kind, index) {
  tracks.push({ name, rows, kind, index, y, items: [], waits: [] });
  y += rows * rowHeight + gap;
}
const threadRows = new Array(meta.threads.length).fill(1), queueRows = new Array(meta.queues.length).fill(1);
for (let i = 0; i < n; i++) {
  if (depth[i] + 1 > threadRows[thread[i]]) threadRows[thread[i]] = depth[i] + 1;
  if (lane[i] + 1 > queueRows[queue[i]]) queueRows[queue[i]] = lane[i] + 1;
}
for (let i = 0; i < w; i++)
  if (waitDepth[i] + 1 > threadRows[waitThread[i]]) threadRows[waitThread[i]] = waitDepth[i] + 1;
const head = name => { headings.push({ name, y }); y += rowHeight + 2; };
head("Threads");
meta.threads.forEach((name, i) => add(name, Math.min(threadRows[i], 12), "thread", i));
head("Queues");
meta.queues.forEach((name, i) => add(name, Math.min(queueRows[i], 12), "queue", i));
const contentHeight = y;
for (let i = 0; i < n; i++) {
  tracks[thread[i]].items.push(i);
  tracks[meta.threads.length + queue[i]].items.push(i);
}
for (let i = 0; i < w; i++) tracks[waitThread[i]].waits.push(i);

const canvas = document.querySelector("canvas"), context = canvas.getContext("2d");
let from = 0, to = Math.max(meta.duration, 1), scroll = 0, chosen = -1, hits = null, due = false;
const hue = text => { let h = 7; for (const c of text) h = (h * 31 + c.charCodeAt(0)) >>> 0; return h * 137.5 % 360; };
const hues = meta.functions.map(hue);
const dark = matchMedia("(prefers-color-scheme: dark)");
// On a bar the function comes first: "Store.add(_:) #1" for closure #1 in it.
const onBar = meta.functions.map(name => {
  const found = /^((?:closure #\d+ in )+)(.+)$/.exec(name);
  return found ? found[2] + found[1].match(/#\d+/g).map(number => " " + number).join("") : name;
});
const widths = new Map();
function fit(text, room, keepsEnd) {
  if (!widths.has(text)) widths.set(text, context.measureText(text).width);
  if (widths.get(text) <= room) return text;
  const count = Math.floor(text.length * room / widths.get(text)) - 2;
  if (count < 3) return "";
  const end = keepsEnd ? Math.floor(count / 2) : 0;
  return text.slice(0, count - end) + "\u2026" + (end ? text.slice(-end) : "");
}
const style = name => getComputedStyle(document.body).getPropertyValue(name).trim();

function draw() {
  due = false;
  const scale = devicePixelRatio, width = canvas.clientWidth, height = canvas.clientHeight;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
  }
  context.setTransform(scale, 0, 0, scale, 0, 0);
  context.fillStyle = style("--back");
  context.fillRect(0, 0, width, height);
  context.font = "11px system-ui, sans-serif";
  context.textBaseline = "middle";
  const fore = style("--fore"), dim = style("--dim"), line = style("--line"), mark = style("--mark");
  const perPixel = (to - from) / (width - left), x = time => left + (time - from) / perPixel;
  // The scale.
  const step = (raw => { const p = 10 ** Math.floor(Math.log10(raw)); return [1, 2, 5, 10].find(f => f * p >= raw) * p; })(
    (to - from) / Math.max(2, (width - left) / 110));
  context.strokeStyle = line;
  context.fillStyle = dim;
  for (let t = Math.ceil(from / step) * step; t <= to; t += step) {
    context.beginPath();
    context.moveTo(x(t), 0);
    context.lineTo(x(t), height);
    context.stroke();
    context.fillText(t ? unit(t) : "0", x(t) + 4, 11);
  }
  context.save();
  context.beginPath();
  context.rect(0, top - 4, width, height);
  context.clip();
  for (const track of tracks) {
    const y = track.y - scroll, tall = track.rows * rowHeight;
    if (y + tall < top || y > height) continue;
    context.strokeStyle = line;
    context.beginPath();
    context.moveTo(0, y + tall + gap / 2);
    context.lineTo(width, y + tall + gap / 2);
    context.stroke();
    context.save();
    context.beginPath();
    context.rect(left, y, width - left, tall);
    context.clip();
    const ids = track.items, ends = new Float64Array(track.rows).fill(-1);
    // Items before the first visible one may still reach into view, if they nest.
    for (let place = Math.max(0, lower(ids, start, from) - 200); place < ids.length; place++) {
      const i = ids[place];
      if (start[i] > to) break;
      const row = Math.min(track.kind === "thread" ? depth[i] : lane[i], track.rows - 1);
      const a = x(start[i]), b = Math.max(x(end[i]), a + 0.6);
      // One rectangle for all items that fall into the same pixel.
      if (b < ends[row] + 0.5 && i !== chosen && !(hits && hits[i])) continue;
      ends[row] = b;
      const faded = hits && !hits[i];
      context.fillStyle = faded ? line : `hsl(${hues[fn[i]]} 55% ${dark.matches ? 42 : 66}%)`;
      context.fillRect(a, y + row * rowHeight, b - a, rowHeight - 2);
      if (i === chosen) {
        context.strokeStyle = mark;
        context.lineWidth = 2;
        context.strokeRect(a, y + row * rowHeight, b - a, rowHeight - 2);
        context.lineWidth = 1;
      }
      const shown = Math.max(a, left);
      if (b - shown > 30) {
        context.fillStyle = faded ? dim : fore;
        context.save();
        context.beginPath();
        context.rect(shown, y + row * rowHeight, b - shown - 3, rowHeight);
        context.clip();
        context.fillText(fit(onBar[fn[i]], b - shown - 8), shown + 4, y + row * rowHeight + rowHeight / 2 - 1);
        context.restore();
      }
    }
    for (const i of track.waits) {
      if (waitEnd[i] < from || waitStart[i] > to) continue;
      const row = Math.min(waitDepth[i], track.rows - 1);
      const a = Math.max(x(waitStart[i]), left), b = Math.max(x(waitEnd[i]), a + 0.6);
      context.fillStyle = style("--wait");
      context.globalAlpha = 0.28;
      context.fillRect(a, y + row * rowHeight, b - a, rowHeight - 2);
      context.globalAlpha = 1;
      if (b - a > 40) {
        context.save();
        context.beginPath();
        context.rect(a, y + row * rowHeight, b - a - 3, rowHeight);
        context.clip();
        context.fillText(fit(meta.waitNames[waitName[i]], b - a - 8), a + 4, y + row * rowHeight + rowHeight / 2 - 1);
        context.restore();
      }
    }
    context.restore();
    context.fillStyle = track.kind === "thread" ? dim : fore;
    context.save();
    context.beginPath();
    context.rect(0, y, left - 10, rowHeight);
    context.clip();
    context.fillText(fit(track.name, left - 26, true), 16, y + rowHeight / 2 - 1);
    context.restore();
  }
  context.fillStyle = dim;
  context.font = "600 11px system-ui, sans-serif";
  for (const heading of headings) context.fillText(heading.name, 16, heading.y - scroll + rowHeight / 2 - 1);
  // From the submission to the start of the chosen item.
  if (chosen >= 0 && submission[chosen]) {
    const source = submitting[chosen] - 1, submitted = submission[chosen] - 1 - delay[chosen];
    const track = tracks[submitThread[chosen]];
    const y1 = (source >= 0 ? track.y + depth[source] * rowHeight : track.y) + rowHeight / 2 - scroll;
    const y2 = tracks[thread[chosen]].y + depth[chosen] * rowHeight + rowHeight / 2 - scroll;
    context.strokeStyle = mark;
    context.beginPath();
    context.moveTo(x(submitted), y1);
    context.bezierCurveTo(x(submitted) + 40, y1, x(start[chosen]) - 40, y2, x(start[chosen]), y2);
    context.stroke();
  }
  context.restore();
}
const again = () => { if (!due) { due = true; requestAnimationFrame(draw); } };

/// The first place in `ids` whose time is not before `time`.
function lower(ids, times, time) {
  let low = 0, high = ids.length;
  while (low < high) { const middle = (low + high) >> 1; if (times[ids[middle]] < time) low = middle + 1; else high = middle; }
  return low;
}
function clamp() {
  const span = Math.min(Math.max(to - from, 20), meta.duration * 1.1 + 20);
  const middle = Math.min(Math.max((from + to) / 2, 0), meta.duration);
  from = middle - span / 2;
  to = middle + span / 2;
  scroll = Math.min(Math.max(scroll, 0), Math.max(0, contentHeight - canvas.clientHeight));
}
function zoom(factor, at) {
  from = at - (at - from) * factor;
  to = at + (to - at) * factor;
  clamp();
  again();
}
const timeAt = px => from + (px - left) / (canvas.clientWidth - left) * (to - from);
canvas.addEventListener("wheel", event => {
  event.preventDefault();
  if (event.shiftKey) { scroll += event.deltaY; clamp(); again(); }
  else zoom(Math.exp(event.deltaY * 0.0015), timeAt(event.offsetX));
}, { passive: false });
let drag = null;
canvas.addEventListener("pointerdown", event => {
  drag = { x: event.offsetX, y: event.offsetY, from, to, scroll, moved: false };
  canvas.setPointerCapture(event.pointerId);
});
canvas.addEventListener("pointermove", event => {
  if (!drag) return;
  const dx = event.offsetX - drag.x, dy = event.offsetY - drag.y;
  if (Math.abs(dx) + Math.abs(dy) > 4) drag.moved = true;
  if (!drag.moved) return;
  const shift = dx / (canvas.clientWidth - left) * (drag.to - drag.from);
  [from, to, scroll] = [drag.from - shift, drag.to - shift, drag.scroll - dy];
  clamp();
  again();
});
canvas.addEventListener("pointerup", event => {
  const wasClick = drag && !drag.moved;
  drag = null;
  if (wasClick) choose(itemAt(event.offsetX, event.offsetY));
});
function itemAt(px, py) {
  const time = timeAt(px), slack = (to - from) / (canvas.clientWidth - left) * 2;
  const track = tracks.find(t => py + scroll >= t.y && py + scroll < t.y + t.rows * rowHeight);
  if (!track) return -1;
  const row = Math.floor((py + scroll - track.y) / rowHeight);
  for (let place = lower(track.items, start, time + slack) - 1, looks = 0; place >= 0 && looks < 5000; place--, looks++) {
    const i = track.items[place];
    if ((track.kind === "thread" ? depth[i] : lane[i]) === row && end[i] + slack >= time) return i;
  }
  return -1;
}
addEventListener("keydown", event => {
  if (event.target.tagName === "INPUT") return;
  const middle = (from + to) / 2, step = (to - from) * 0.2;
  if (event.key === "w" || event.key === "+") zoom(0.6, middle);
  else if (event.key === "s" || event.key === "-") zoom(1 / 0.6, middle);
  else if (event.key === "a" || event.key === "ArrowLeft") { from -= step; to -= step; clamp(); again(); }
  else if (event.key === "d" || event.key === "ArrowRight") { from += step; to += step; clamp(); again(); }
  else if (event.key === "ArrowDown") { scroll += 60; clamp(); again(); }
  else if (event.key === "ArrowUp") { scroll -= 60; clamp(); again(); }
});
function show(i) {
  const span = Math.max((end[i] - start[i]) * 6, 200);
  from = start[i] - span / 3;
  to = from + span;
  scroll = tracks[thread[i]].y - canvas.clientHeight / 3;
  clamp();
  choose(i);
}
let at = -1;
function search() {
  const text = document.getElementById("search").value.toLowerCase();
  at = -1;
  if (!text) { hits = null; document.getElementById("found").textContent = ""; return again(); }
  const inFunction = meta.functions.map(f => f.toLowerCase().includes(text));
  const inQueue = meta.queues.map(q => q.toLowerCase().includes(text));
  hits = new Uint8Array(n);
  let count = 0;
  for (let i = 0; i < n; i++) if (inFunction[fn[i]] || inQueue[queue[i]]) { hits[i] = 1; count++; }
  document.getElementById("found").textContent = counted(count, "item");
  again();
}
document.getElementById("search").oninput = search;
document.getElementById("next").onclick = () => {
  if (!hits) return;
  const next = hits.indexOf(1, at + 1);
  at = next >= 0 ? next : hits.indexOf(1);
  if (at >= 0) show(at);
};
document.getElementById("all").onclick = () => { from = 0; to = Math.max(meta.duration, 1); scroll = 0; clamp(); again(); };
new ResizeObserver(again).observe(canvas);
dark.addEventListener("change", again);
choose(-1);
