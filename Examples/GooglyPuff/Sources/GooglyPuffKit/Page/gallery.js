// The page shows what the server's events report. The server owns the state: when the page reconnects, it gets all of it
// again.

import { addEye, addEyes } from "./eyes.js";
import { announce, upload } from "./uploads.js";

const $ = (id) => document.getElementById(id);
const page = Array.from(crypto.getRandomValues(new Uint32Array(4)), (n) => n.toString(36)).join("");
export const photos = new Map();
let shown = null;

for (const face of [$("logo"), $("lonely")]) { addEye(face); addEye(face); }

// Events.

const events = new EventSource(`/events?page=${page}`);
const on = (name, handle) => events.addEventListener(name, (event) => handle(JSON.parse(event.data)));

on("photos", (all) => {
  const ids = new Set(all.map((photo) => photo.id));
  for (const id of [...photos.keys()]) if (!ids.has(id)) drop(id);
  all.forEach(show);
  watch();
});
on("photo", show);
on("removed", drop);
on("prompt", (isShown) => { $("prompt").hidden = !isShown; });
on("notice", (notice) => { tell(notice); watch(); });

function show(photo) {
  let tile = photos.get(photo.id)?.tile;
  if (!tile) {
    tile = $("tile").content.firstElementChild.cloneNode(true);
    tile.querySelector(".name").textContent = photo.name;
    tile.querySelector(".open").onclick = () => open(photo.id);
    tile.querySelector(".drop").onclick = () => remove(photo.id);
    tile.querySelector(".drop").ariaLabel = `Remove ${photo.name}`;
    $("photos").append(tile);
  }
  photos.set(photo.id, { photo, tile });
  tile.className = photo.stage;
  tile.querySelector(".open").disabled = photo.stage !== "ready";
  if (photo.stage === "ready") {
    const image = tile.querySelector("img");
    image.alt = photo.name;
    image.src = `/photos/${photo.id}/${photo.eyes?.length ? "googly-thumbnail" : "thumbnail"}`;
  }
  if (shown === photo.id) reveal(photo);
  $("empty").hidden = photos.size > 0;
}

function drop(id) {
  photos.get(id)?.tile.remove();
  photos.delete(id);
  if (shown === id) $("viewer").close();
  $("empty").hidden = photos.size > 0;
}

function remove(id) {
  fetch(`/photos/${id}`, { method: "DELETE" });
}

// Notices.

function tell({ arrived, failures }) {
  const count = (n) => n === 1 ? "One photo" : `${n} photos`;
  const parts = [];
  if (arrived) parts.push(`${count(arrived)} ${arrived === 1 ? "has" : "have"} arrived.`);
  if (failures.length) parts.push(`${count(failures.length)} could not be added:`);
  if (!parts.length) return;
  const notice = $("notice").content.firstElementChild.cloneNode(true);
  notice.querySelector("p").textContent = parts.join(" ");
  for (const { name, reason } of failures) {
    const item = document.createElement("li");
    item.textContent = `${name}: ${reason}`;
    notice.querySelector("ul").append(item);
  }
  notice.querySelector("button").onclick = () => notice.remove();
  $("notices").append(notice);
  // Success notices disappear; failures stay until they are closed.
  if (!failures.length) setTimeout(() => notice.remove(), 6000);
}

async function watch() {
  const { items, longest } = await (await fetch("/statistics")).json();
  $("watch").textContent = `main queue: ${items} ${items === 1 ? "item" : "items"}, the longest held it for ${(longest / 1e6).toFixed(2)} ms`;
}

// One photo, large.

async function open(id) {
  const entry = photos.get(id);
  if (entry?.photo.stage !== "ready") return;
  shown = id;
  const { photo } = entry;
  const viewer = $("viewer");
  viewer.style.setProperty("--ratio", photo.width / photo.height);
  viewer.querySelector("img").src = `/photos/${id}/photo`;
  viewer.querySelector("img").alt = photo.name;
  viewer.querySelector(".eyes").replaceChildren();
  $("caption").textContent = photo.name;
  say("Looking for faces", true);
  if (!viewer.open) viewer.showModal();
  if (photo.eyes) reveal(photo);
  else fetch(`/photos/${id}/open`, { method: "POST" });
}

async function reveal(photo) {
  if (!photo.eyes) return;
  if (photo.eyes.length === 0) return say("No face here. Nothing to googlify.");
  const googly = new Image();
  googly.src = `/photos/${photo.id}/googly`;
  await googly.decode();
  // Another photo may have been opened meanwhile.
  if (shown !== photo.id) return;
  $("viewer").querySelector("img").src = googly.src;
  addEyes($("viewer").querySelector(".eyes"), photo);
  const faces = photo.eyes.length / 2;
  say(faces === 1 ? "One face, much improved." : `${faces} faces, much improved.`);
}

function say(text, searching = false) {
  $("verdict").textContent = text;
  $("verdict").className = searching ? "searching" : "";
}

$("viewer").onclose = () => { shown = null; };
$("remove").onclick = () => remove(shown);

// Adding.

const problem = document.querySelector("#chooser .problem");

function complain(error) {
  problem.textContent = error.message;
  problem.hidden = false;
  if (!$("chooser").open) $("chooser").showModal();
}

async function choose() {
  problem.hidden = true;
  $("chooser").showModal();
  if (!$("urls").value) $("urls").value = (await (await fetch("/internet")).json()).join("\n");
}

async function send(files) {
  if (files.length === 0) return;
  try {
    await upload(files, page, (id, fraction) => {
      const bar = photos.get(id)?.tile.querySelector("progress");
      if (bar) bar.value = fraction;
    }, (done, count) => {
      $("progress").hidden = done === count;
      $("progress").querySelector("span").textContent = `${done} of ${count}`;
      $("progress").querySelector("progress").value = done / count;
    });
  } catch (error) { complain(error); }
}

$("add").onclick = $("invite").onclick = choose;
$("own").onclick = () => $("files").click();
$("files").onchange = () => {
  $("chooser").close();
  send([...$("files").files]);
  $("files").value = "";
};
$("fetch").onclick = async () => {
  const urls = $("urls").value.split(/\s+/).filter(Boolean);
  try {
    await announce("/downloads", { urls });
    $("chooser").close();
  } catch (error) { complain(error); }
};
