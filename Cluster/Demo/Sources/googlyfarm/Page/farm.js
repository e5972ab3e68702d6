// Who works on what, above the photos. The state is small, so the page asks for all of it.

import { addEye } from "./eyes.js";
import { photos } from "./gallery.js";

const farm = document.createElement("section");
farm.id = "farm";
farm.innerHTML = `<div id="crew"></div><div id="engine"><div id="servers"></div><ol id="events"></ol></div>`;
document.querySelector("main").prepend(farm);
const [crew, servers, events] = ["crew", "servers", "events"].map((id) => document.getElementById(id));
const cards = new Map();

function card(name) {
  if (!cards.has(name)) {
    const element = document.createElement("article");
    element.dataset.worker = name;
    element.innerHTML = `<div class="face" aria-hidden="true"></div><div><b>worker ${Number(name)}</b><p></p></div><output></output>`;
    const face = element.querySelector(".face");
    addEye(face); addEye(face);
    crew.append(element);
    cards.set(name, element);
  }
  return cards.get(name);
}

function show(state) {
  for (const [name, worker] of Object.entries(state.workers).sort()) {
    const element = card(name);
    element.classList.toggle("dead", !worker.isAlive);
    element.classList.toggle("busy", worker.photo !== undefined);
    element.querySelector("p").textContent =
      !worker.isAlive ? "killed" : worker.photo !== undefined ? `${worker.name} (${worker.photo})` : "waits for photos";
    element.querySelector("output").textContent = worker.finished;
  }
  servers.replaceChildren(...Object.entries(state.servers).sort().map(([name, isAlive]) => {
    const chip = document.createElement("span");
    chip.className = isAlive ? "" : "dead";
    chip.textContent = `server ${name}`;
    return chip;
  }));
  events.replaceChildren(...state.events.map((text) => {
    const line = document.createElement("li");
    line.textContent = text;
    return line;
  }));
  for (const [id, { worker, starts, isFinished }] of Object.entries(state.photos)) {
    const tile = photos.get(Number(id))?.tile;
    if (!tile || worker === undefined) continue;
    tile.dataset.worker = worker;
    tile.dataset.text = starts > 1 ? `worker ${worker}, start ${starts}` : `worker ${worker}`;
    tile.toggleAttribute("data-busy", !isFinished);
  }
}

for (;;) {
  try {
    show(await (await fetch("/farm")).json());
  } catch { /* The page's process has ended; the gallery waits for it, too. */ }
  await new Promise((resolve) => setTimeout(resolve, 200));
}
