// Numbers, dates and probabilities as text.

// Digits after the point at which a standard deviation or a step has two digits.
function decimalsOf(size) {
  if (!(size > 0) || !Number.isFinite(size)) return 3;
  return Math.min(Math.max(1 - Math.floor(Math.log10(size)), 0), 15);
}

function numberText(value, size) {
  if (value === Infinity) return "∞";
  if (value === -Infinity) return "−∞";
  if (!Number.isFinite(value)) return "–";
  const magnitude = Math.max(Math.abs(value), size || 0);
  if (magnitude >= 1e7 || (magnitude > 0 && magnitude < 1e-4)) {
    return minus(value.toExponential(3));
  }
  const text = value.toFixed(Math.min(decimalsOf(size || Math.abs(value) / 50), 12));
  return minus(/^-0\.?0*$/.test(text) ? text.slice(1) : text);
}

const minus = (text) => text.replace(/-/g, "\u2212");

function dateText(days, withTime) {
  const date = new Date(Math.round(days * 1440) * 60000);
  if (Number.isNaN(date.getTime())) return "–";
  const text = date.toISOString();
  return withTime ? `${text.slice(0, 10)} ${text.slice(11, 16)}` : text.slice(0, 10);
}

function timeText(share) {
  const minutes = Math.round((((share % 1) + 1) % 1) * 1440) % 1440;
  return `${String(Math.floor(minutes / 60)).padStart(2, "0")}:${String(minutes % 60).padStart(2, "0")}`;
}

function probabilityText(p) {
  if (p < 0.001) return "< 0.1 %";
  if (p > 0.999) return "> 99.9 %";
  return `${(100 * p).toFixed(1)} %`;
}

// A value of a control as text; `plain` is the form that a table or a link has.
function valueText(control, value, plain) {
  if (control.kind === "category") {
    const label = control.labels[value];
    return plain && label === control.missingLabel ? "" : label;
  }
  if (!Number.isFinite(value)) return plain ? "" : "missing";
  if (control.kind === "boolean") return value > 0.5 ? "true" : "false";
  if (control.kind === "date") return dateText(value, (control.seasons ?? []).includes("day"));
  if (control.kind === "time") return timeText(value);
  return plain ? String(Number(value.toPrecision(12))) : numberText(value, 20 * control.step);
}

function escaped(text) {
  const entities = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return String(text).replace(/[&<>"]/g, (c) => entities[c]);
}
