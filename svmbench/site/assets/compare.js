// Scatter plots of two solvers over all settings that both finished, from compare-data.js.
"use strict";

const SIZE = 360;
const EDGE = 48;
const SVG = document.getElementById("blank").namespaceURI;
const [first, second] = ["first", "second"].map((id) => document.getElementById(id));

function element(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

// Multiples of 1, 2 or 5 times a power of ten, at most five between two values.
function roundTicks(low, high) {
  const power = 10 ** Math.floor(Math.log10((high - low) / 4));
  const step = [1, 2, 5, 10].map((head) => head * power).find((one) => 4 * one >= high - low);
  const start = Math.ceil(low / step);
  return Array.from({ length: Math.floor(high / step) - start + 1 }, (_, i) => (start + i) * step);
}

// A square chart with the same axis for both solvers and its diagonal.
function scatter(title, points, names, logarithmic) {
  const scale = (value) => (logarithmic ? Math.log10(value) : value);
  const values = points.flatMap((point) => [scale(point.x), scale(point.y)]);
  let [low, high] = [Math.min(...values), Math.max(...values)];
  if (logarithmic) [low, high] = [Math.floor(low), Math.ceil(high)];
  if (high - low < 1e-9) [low, high] = [low - 1, high + 1];
  const place = (value) => EDGE + ((scale(value) - low) / (high - low)) * (SIZE - EDGE - 10);
  const svg = element("svg", {
    viewBox: `0 0 ${SIZE} ${SIZE}`, role: "img", "aria-label": `${title}: ${points.length} settings`,
  });
  const line = (x1, y1, x2, y2, name) =>
    svg.append(element("line", { x1, y1: SIZE - y1, x2, y2: SIZE - y2, class: name }));
  const ticks = logarithmic
    ? Array.from({ length: high - low + 1 }, (_, i) => 10 ** (low + i))
    : roundTicks(low, high);
  for (const tick of ticks) {
    const at = place(tick);
    line(at, EDGE, at, SIZE - 10, "grid");
    line(EDGE, at, SIZE - 10, at, "grid");
    const text = String(Number(tick.toPrecision(6)));
    const style = { "font-size": 11 };
    svg.append(element("text", { x: at, y: SIZE - EDGE + 15, "text-anchor": "middle", ...style }, text));
    svg.append(element("text", { x: EDGE - 4, y: SIZE - at + 4, "text-anchor": "end", ...style }, text));
  }
  line(EDGE, EDGE, SIZE - 10, SIZE - 10, "diagonal");
  svg.append(element("text", { x: SIZE / 2, y: SIZE - 10, "text-anchor": "middle", "font-size": 12 }, `${names[0]}, ${title}`));
  svg.append(element("text", { x: 14, y: SIZE / 2, "text-anchor": "middle", "font-size": 12, transform: `rotate(-90 14 ${SIZE / 2})` }, `${names[1]}, ${title}`));
  for (const point of points) {
    const dot = element("circle", { cx: place(point.x), cy: SIZE - place(point.y), r: 4 });
    dot.append(element("title", {}, `${point.name}: ${point.x.toPrecision(3)} and ${point.y.toPrecision(3)}`));
    svg.append(dot);
  }
  return svg;
}

function median(values) {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = sorted.length >> 1;
  return sorted.length % 2 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

function compareSolvers() {
  const names = [first.value, second.value];
  const [one, other] = names.map((name) => COMPARE[name] || {});
  const common = Object.keys(one).filter((key) => key in other);
  const times = common.map((key) => ({ name: key, x: one[key][0], y: other[key][0] }));
  const accuracies = common
    .filter((key) => one[key][1] !== null && other[key][1] !== null)
    .map((key) => ({ name: key, x: one[key][1], y: other[key][1] }));
  const charts = [];
  if (times.length) charts.push(scatter("CPU time (s)", times, names, true));
  if (accuracies.length) charts.push(scatter("accuracy (%)", accuracies, names, false));
  document.getElementById("charts").replaceChildren(...charts);
  const said = document.getElementById("compared");
  if (!times.length) {
    said.textContent = "No run has both solvers in one setting.";
    return;
  }
  const faster = times.filter((point) => point.x < point.y).length;
  const ratio = median(times.map((point) => point.y / point.x)).toPrecision(3);
  const better = accuracies.filter((point) => point.x > point.y).length;
  said.textContent =
    `${names[0]} is faster in ${faster} of ${times.length} settings; the median ratio of the times is ${ratio}.` +
    (accuracies.length ? ` It is more accurate in ${better} of ${accuracies.length}.` : "");
}

const solvers = Object.keys(COMPARE);
const usual = ["csvc", "libsvm"];
const start = usual.every((name) => solvers.includes(name)) ? usual : solvers;
for (const [select, at] of [[first, 0], [second, 1]]) {
  select.append(...solvers.map((name) => new Option(name, name)));
  select.value = start[Math.min(at, start.length - 1)];
  select.addEventListener("change", compareSolvers);
}
const asked = new URLSearchParams(location.search);
for (const select of [first, second]) {
  if (solvers.includes(asked.get(select.id))) select.value = asked.get(select.id);
}
compareSolvers();
