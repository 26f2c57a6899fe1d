// Numbers, dates and probabilities as text.

// Digits after the point at which a standard deviation or a step has two digits.
function decimalsOf(size) {
  if (!(size > 0) || !Number.isFinite(size)) return 3;
  return Math.min(Math.max(1 - Math.floor(Math.log10(size)), 0), 15);
}

// Whole decimal exponent of a size.
const exponentOf = (size) => Math.floor(Math.log10(size) + 1e-9);

// A number with two digits of a size, with an exponent if it is large or small.
function numberText(value, size) {
  if (value === Infinity) return "∞";
  if (value === -Infinity) return "−∞";
  if (!Number.isFinite(value)) return "–";
  const magnitude = Math.max(Math.abs(value), size || 0);
  const digits = size > 0 ? clip(exponentOf(magnitude) - exponentOf(size) + 1, 3, 15) : 3;
  const isLarge = magnitude >= 1e15 || (magnitude >= 1e7 && digits === 3);
  if (isLarge || (magnitude > 0 && magnitude < 1e-4)) return minus(value.toExponential(digits));
  const text = value.toFixed(Math.min(decimalsOf(size || Math.abs(value) / 50), 12));
  return minus(/^-0\.?0*$/.test(text) ? text.slice(1) : text);
}

const minus = (text) => text.replace(/-/g, "\u2212");

// A date, with its time of day unless that is midnight.
function dateText(days) {
  const date = new Date(Math.round(days * 86400) * 1000);
  if (Number.isNaN(date.getTime())) return "–";
  const [day, time] = date.toISOString().split("T");
  return time.startsWith("00:00:00") ? day : `${day} ${withoutSeconds(time.slice(0, 8))}`;
}

function timeText(share) {
  const seconds = Math.round((((share % 1) + 1) % 1) * 86400) % 86400;
  return withoutSeconds(new Date(seconds * 1000).toISOString().slice(11, 19));
}

const withoutSeconds = (time) => (time.endsWith(":00") ? time.slice(0, 5) : time);

function probabilityText(p) {
  if (p < 0.001) return "< 0.1 %";
  if (p > 0.999) return "> 99.9 %";
  return `${(100 * p).toFixed(1)} %`;
}

// A value of a control as text; `plain` is the form that a table or a link has.
function valueText(control, value, plain) {
  if (control.kind === "category") {
    const isMissing = control.missing && value === control.labels.length - 1;
    return plain && isMissing ? "" : control.labels[value];
  }
  if (!Number.isFinite(value)) return plain ? "" : "missing";
  if (control.kind === "boolean") return value > 0.5 ? "true" : "false";
  if (control.kind === "date") return dateText(value);
  if (control.kind === "time") return timeText(value);
  return plain ? String(value) : numberText(value, 20 * control.step);
}

// A cell of a table whose columns are separated by tabs.
function cellText(value) {
  const text = String(value);
  return /[\t\r\n"]/.test(text) ? `"${text.replace(/"/g, '""')}"` : text;
}
