// The column beside the tracks: one item, or histograms of the queues.
const aside = document.querySelector("aside");
function choose(i) {
  chosen = i;
  aside.replaceChildren();
  if (i < 0) overview(); else details(i);
  again();
}
function details(i) {
  aside.append(element("h2", meta.functions[fn[i]]));
  const list = element("dl", "");
  const row = (name, value) => {
    const cell = element("dd", "");
    cell.append(value);
    list.append(element("dt", name), cell);
  };
  row("queue", meta.queues[queue[i]]);
  row("thread", meta.threads[thread[i]]);
  row("began", unit(start[i]));
  row("took", unit(end[i] - start[i]));
  if (submission[i]) {
    row("waited", unit(start[i] - submission[i] + 1));
    if (delay[i]) row("delayed", unit(delay[i]));
    const source = submitting[i] - 1;
    if (source >= 0) {
      const link = element("a", `${meta.functions[fn[source]]} on ${meta.queues[queue[source]]}`);
      link.onclick = () => show(source);
      row("submitted by", link);
    } else row("submitted by", meta.threads[submitThread[i]]);
  }
  for (let k = 0; k < w; k++)
    if (waitThread[k] === thread[i] && waitStart[k] >= start[i] && waitEnd[k] <= end[i])
      row("waits", `${meta.waitNames[waitName[k]]}, ${unit(waitEnd[k] - waitStart[k])}`);
  aside.append(list);
  const back = element("a", "Histograms of the queues");
  back.onclick = () => choose(-1);
  aside.append(back);
}
// Histograms over powers of two.
function histogram(values, color) {
  const bins = new Array(40).fill(0);
  for (const value of values) bins[Math.min(39, Math.max(0, Math.floor(Math.log2(Math.max(value, 1)))))]++;
  const first = bins.findIndex(b => b), last = 39 - [...bins].reverse().findIndex(b => b);
  if (first < 0) return element("p", "none");
  const most = Math.max(...bins), count = last - first + 1;
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("viewBox", `0 0 ${Math.max(count, 8) * 10} 44`);
  svg.setAttribute("preserveAspectRatio", "none");
  for (let k = 0; k < count; k++) {
    const bar = document.createElementNS("http://www.w3.org/2000/svg", "rect");
    const tall = bins[first + k] ? Math.max(1.5, bins[first + k] / most * 42) : 0;
    for (const [name, value] of [["x", k * 10 + 1], ["y", 44 - tall], ["width", 8], ["height", tall], ["fill", color]])
      bar.setAttribute(name, value);
    const tip = document.createElementNS("http://www.w3.org/2000/svg", "title");
    tip.textContent = `${unit(2 ** (first + k))} to ${unit(2 ** (first + k + 1))}: ${bins[first + k]}`;
    bar.append(tip);
    svg.append(bar);
  }
  return svg;
}
const quantile = (sorted, q) => sorted.length ? sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] : 0;
function overview() {
  aside.append(element("h2", "Queues"));
  const order = meta.queues.map((_, q) => q).sort((a, b) =>
    tracks[meta.threads.length + b].items.length - tracks[meta.threads.length + a].items.length);
  for (const q of order.slice(0, 30)) {
    const ids = tracks[meta.threads.length + q].items;
    const run = Float64Array.from(ids, i => end[i] - start[i]).sort();
    const wait = Float64Array.from(ids.filter(i => submission[i]), i => start[i] - submission[i] + 1).sort();
    const card = element("div", "");
    card.className = "queue";
    card.append(element("b", meta.queues[q]),
      element("p", `${counted(ids.length, "item")} \u00b7 run ${unit(quantile(run, 0.5))} median, `
        + `${unit(quantile(run, 0.99))} 99 %`), histogram(run, "#4c8bd6"));
    if (wait.length) card.append(element("p", `wait ${unit(quantile(wait, 0.5))} median, ${unit(quantile(wait, 0.99))} 99 %`),
      histogram(wait, "#d9822b"));
    aside.append(card);
  }
}
