// Drawings as SVG: a curve with bands, estimates of categories, a ruler, and small curves.

const SVG = "http://www.w3.org/2000/svg";

function element(parent, name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes ?? {})) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  parent.appendChild(node);
  return node;
}

function cleared(svg, anyWidth, height) {
  const width = Math.max(anyWidth, 0);
  svg.replaceChildren();
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
}

// Round values between two ends, at most about a number of them.
function ticks(low, high, most) {
  const rough = (high - low) / Math.max(most, 1);
  if (!(rough > 0) || !Number.isFinite(rough)) return [low];
  const power = 10 ** Math.floor(Math.log10(rough));
  return multiples(low, high, power * [1, 2, 5, 10].find((a) => a * power >= rough));
}

function multiples(low, high, step) {
  const first = Math.ceil(low / step), count = Math.floor(high / step + 1e-9) - first + 1;
  return Array.from({ length: clip(count, 0, 100) }, (_, i) => (first + i) * step);
}

const MINUTES = [1, 2, 5, 10, 15, 30, 60, 120, 180, 360, 720, 1440, 2880, 7200, 14400];
const MONTHS = [1, 2, 3, 6, 12, 24, 60, 120, 240, 600, 1200];

// Times or days, or first days of months or years, between two dates, at most about a number.
function dateTicks(low, high, most) {
  const fixed = MINUTES.find((m) => ((high - low) * 1440) / m <= most);
  if (fixed) return multiples(low, high, fixed / 1440);
  const step = MONTHS.find((m) => (high - low) / 30.44 / m <= most) ?? 2400;
  const first = new Date(low * 86400000), out = [];
  let month = 12 * first.getUTCFullYear() + first.getUTCMonth();
  for (month = Math.ceil(month / step) * step; ; month += step) {
    const days = Date.UTC(Math.floor(month / 12), month % 12, 1) / 86400000;
    if (!(days <= high)) return out;
    if (days >= low) out.push(days);
  }
}

// Labels of dates in an interval of so many days.
function dateLabel(span) {
  if (span > 60) return (days) => dateText(days).slice(0, 7);
  if (span > 2) return (days) => dateText(days).slice(0, 10);
  return (days) => (days === Math.round(days) ? dateText(days) : timeText(days));
}

const linear = (low, high, from, to) => (v) => from + ((v - low) / (high - low || 1)) * (to - from);

function path(xs, ys) {
  return xs.map((x, i) => `${i ? "L" : "M"}${x.toFixed(1)} ${ys[i].toFixed(1)}`).join("");
}

function band(xs, low, high) {
  return `${path(xs, low)}${path([...xs].reverse(), [...high].reverse()).replace("M", "L")}Z`;
}

// Finite limits that contain values, with a margin. Limits that round-off separates are widened.
function limits(values, margin) {
  let low = Infinity, high = -Infinity;
  for (const value of values) {
    if (!Number.isFinite(value)) continue;
    low = Math.min(low, value);
    high = Math.max(high, value);
  }
  if (low > high) [low, high] = [0, 1];
  const size = Math.max(Math.abs(low), Math.abs(high));
  if (!(high - low > 1e-14 * size)) [low, high] = [low - (size || 1) / 2, high + (size || 1) / 2];
  const extra = margin * (high - low);
  return [low - extra, high + extra];
}

// The same with a threshold, unless it is so far away that values would be a line.
function limitsWith(threshold, values, margin) {
  const [low, high] = limits(values, 0), span = high - low;
  const isNear = threshold !== null && threshold > low - span && threshold < high + span;
  return limits(isNear ? [low, high, threshold] : [low, high], margin);
}

const contains = ([low, high], value) => value !== null && value >= low && value <= high;

// Labels of ticks, with as many digits as their distance needs.
function tickText(values) {
  const step = values.length > 1 ? Math.abs(values[1] - values[0]) : Math.abs(values[0]) || 1;
  const largest = Math.max(...values.map(Math.abs)), digits = exponentOf(largest) - exponentOf(step);
  const isLarge = largest >= 1e15 || (largest >= 1e7 && digits < 4);
  if (isLarge || largest < 1e-4) {
    const count = (v) => clip(exponentOf(Math.abs(v)) - exponentOf(step), 1, 15);
    return (v) => (v === 0 ? "0" : minus(v.toExponential(count(v))));
  }
  return (v) => minus(v.toFixed(clip(-exponentOf(step), 0, 15)));
}

// Axes of a plot: value scale on the left, and ticks below, both with the given labels.
function frame(svg, box, labels, y, xTicks, x, xText) {
  for (const [value, text] of labels) {
    const at = y(value);
    element(svg, "line", { class: "ux-grid-line", x1: box.left, x2: box.right, y1: at, y2: at });
    element(svg, "text", { class: "ux-tick", x: box.left - 7, y: at + 4, "text-anchor": "end" }, text);
  }
  for (const value of xTicks) {
    const at = x(value);
    element(svg, "line", { class: "ux-axis", x1: at, x2: at, y1: box.bottom, y2: box.bottom + 4 });
    const anchor = at > box.right - 18 ? "end" : at < box.left + 18 ? "start" : "middle";
    element(svg, "text", { class: "ux-tick", x: at, y: box.bottom + 17, "text-anchor": anchor }, xText(value));
  }
  element(svg, "line", { class: "ux-axis", x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom });
}

// The curve of one input: band of new observations, band of the mean, curve, rows, present value.
function drawCurve(svg, width, curve, control, threshold) {
  const height = Math.round(Math.min(Math.max(0.52 * width, 230), 340));
  cleared(svg, width, height);
  const [top, bottom] = [12, height - 26];
  const domain = limitsWith(threshold, curve.points.flatMap((p) => [...p.observation, ...p.mean, p.estimate]), 0.04);
  const values = ticks(...domain, Math.max(2, Math.floor((bottom - top) / 45)));
  const labels = values.map((value) => [value, tickText(values)(value)]);
  const left = Math.max(54, 14 + 6.6 * Math.max(...labels.map(([, text]) => text.length)));
  const box = { left, right: Math.max(width - 12, left + 1), top, bottom };
  const y = linear(...domain, bottom, top);
  const x = linear(curve.low, curve.high, box.left, box.right);
  const count = Math.max(2, Math.floor((box.right - box.left) / 90));
  const isDate = control.kind === "date";
  const at = isDate ? dateTicks(curve.low, curve.high, count) : ticks(curve.low, curve.high, count);
  const text = isDate ? dateLabel(curve.high - curve.low) : control.kind === "time" ? timeText : tickText(at);
  frame(svg, box, labels, y, at, x, text);
  const inside = (v) => Math.min(Math.max(y(v), box.top - 4), box.bottom + 4);
  const xs = curve.points.map((p) => x(p.value));
  const line = (pick) => curve.points.map((p) => inside(pick(p)));
  element(svg, "path", { class: "ux-band-observation", d: band(xs, line((p) => p.observation[0]), line((p) => p.observation[1])) });
  element(svg, "path", { class: "ux-band-mean", d: band(xs, line((p) => p.mean[0]), line((p) => p.mean[1])) });
  element(svg, "path", { class: "ux-line", d: path(xs, line((p) => p.estimate)) });
  for (const value of curve.rug) {
    if (value < curve.low || value > curve.high) continue;
    element(svg, "line", { class: "ux-rug", x1: x(value), x2: x(value), y1: box.bottom - 6, y2: box.bottom });
  }
  for (const [from, to] of [[curve.low, control.low], [control.high, curve.high]]) {
    if (to > from) element(svg, "rect", { class: "ux-beyond", x: x(from), y: box.top, width: x(to) - x(from), height: box.bottom - box.top });
  }
  if (contains(domain, threshold)) element(svg, "line", { class: "ux-threshold-line", x1: box.left, x2: box.right, y1: y(threshold), y2: y(threshold) });
  marker(svg, x(clip(curve.value, curve.low, curve.high)), box, inside(curve.now.estimate), curve.now.mean.map(inside));
  return { box, valueAt: (px) => curve.low + ((px - box.left) / (box.right - box.left)) * (curve.high - curve.low) };
}

function marker(svg, at, box, y, ends) {
  element(svg, "line", { class: "ux-marker-line", x1: at, x2: at, y1: box.top, y2: box.bottom });
  element(svg, "line", { class: "ux-marker-bar", x1: at, x2: at, y1: ends[0], y2: ends[1] });
  element(svg, "circle", { class: "ux-marker", cx: at, cy: y, r: 5.5 });
}

// Estimates of the categories of a column, one line each.
function drawCategories(svg, width, curve, control, threshold) {
  const rows = curve.points, left = Math.min(170, 0.34 * width), step = 26;
  const height = rows.length * step + 40;
  cleared(svg, width, height);
  const domain = limitsWith(threshold, rows.flatMap((p) => [...p.observation, ...p.mean, p.estimate]), 0.04);
  const x = linear(...domain, left, width - 14);
  const values = ticks(...domain, Math.max(2, Math.floor((width - left) / 80))), text = tickText(values);
  const bottom = height - 26;
  for (const value of values) {
    element(svg, "line", { class: "ux-grid-line", x1: x(value), x2: x(value), y1: 6, y2: bottom });
    element(svg, "text", { class: "ux-tick", x: x(value), y: bottom + 17, "text-anchor": "middle" }, text(value));
  }
  rows.forEach((p, i) => {
    const y = 6 + (i + 0.5) * step, present = p.value === curve.value;
    const name = control.labels[p.value];
    const shown = name.length > left / 7.2 ? `${name.slice(0, Math.floor(left / 7.2) - 1)}…` : name;
    element(svg, "text", { class: present ? "ux-label ux-present" : "ux-label", x: left - 10, y: y + 4, "text-anchor": "end" }, shown);
    const finite = (v) => x(clip(v, ...domain));
    element(svg, "line", { class: "ux-bar-observation", x1: finite(p.observation[0]), x2: finite(p.observation[1]), y1: y, y2: y });
    element(svg, "line", { class: "ux-bar-mean", x1: finite(p.mean[0]), x2: finite(p.mean[1]), y1: y, y2: y });
    element(svg, "circle", { class: present ? "ux-marker" : "ux-dot", cx: x(p.estimate), cy: y, r: present ? 5.5 : 3.5 });
  });
  if (contains(domain, threshold)) element(svg, "line", { class: "ux-threshold-line", x1: x(threshold), x2: x(threshold), y1: 6, y2: bottom });
  const rowAt = (py) => rows[Math.min(Math.max(Math.floor((py - 6) / step), 0), rows.length - 1)].value;
  return { rowAt };
}

// Prediction and intervals on the scale of the observations, above their histogram.
function drawRuler(svg, width, now, reference, observed, threshold) {
  const height = 92, base = 68;
  cleared(svg, width, height);
  const shown = [...now.observation, ...now.mean, now.estimate];
  const domain = limitsWith(threshold, [...observed.range, ...shown.map((v) => clip(v, observed.floor, observed.ceiling))], 0.02);
  const x = linear(...domain, 10, width - 10);
  const at = (v) => x(clip(v, ...domain));
  const values = ticks(...domain, Math.max(2, Math.floor(width / 80))), text = tickText(values);
  histogram(svg, observed.values, domain, x, base, 46);
  element(svg, "line", { class: "ux-axis", x1: 10, x2: width - 10, y1: base, y2: base });
  for (const value of values) {
    element(svg, "text", { class: "ux-tick", x: x(value), y: base + 17, "text-anchor": "middle" }, text(value));
  }
  const bar = (name, [low, high], y) => element(svg, "line", { class: name, x1: at(low), x2: at(high), y1: y, y2: y });
  bar("ux-bar-observation", now.observation, 38);
  bar("ux-bar-mean", now.mean, 38);
  if (reference !== null) element(svg, "line", { class: "ux-reference", x1: at(reference), x2: at(reference), y1: 20, y2: base });
  if (contains(domain, threshold)) element(svg, "line", { class: "ux-threshold-line", x1: at(threshold), x2: at(threshold), y1: 8, y2: base });
  element(svg, "circle", { class: "ux-marker", cx: at(now.estimate), cy: 38, r: 6.5 });
}

function histogram(svg, values, [low, high], x, base, height) {
  const bins = 36, counts = new Array(bins).fill(0);
  for (const value of values) {
    const bin = Math.floor(((value - low) / (high - low)) * bins);
    if (bin >= 0 && bin < bins) counts[bin]++;
  }
  const most = Math.max(...counts, 1);
  counts.forEach((count, i) => {
    if (!count) return;
    const from = x(low + (i / bins) * (high - low)), to = x(low + ((i + 1) / bins) * (high - low));
    const size = (count / most) * height;
    element(svg, "rect", { class: "ux-histogram", x: from, y: base - size, width: Math.max(to - from - 1, 0.5), height: size });
  });
}

// A small curve of the mean beside a control, with the present value.
function drawSpark(svg, width, points, domain, low, high, value) {
  const height = 30;
  cleared(svg, width, height);
  const x = linear(low, high, 8, width - 8), y = linear(...domain, height - 3, 3);
  element(svg, "path", { class: "ux-spark", d: path(points.map((p) => x(p[0])), points.map((p) => y(p[1]))) });
  const at = x(clip(value, low, high));
  element(svg, "line", { class: "ux-spark-now", x1: at, x2: at, y1: 0, y2: height });
}
