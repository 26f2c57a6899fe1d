// Controls of the inputs: menus, and sliders with a field and a small curve.

function controlBox(explorer, j) {
  const control = explorer.controls[j], box = node("div", { class: "ux-control" });
  const id = `${explorer.root.id}-${j}`, name = node("button", { type: "button", class: "ux-name" }, control.name);
  name.title = "Show the curve of this input";
  name.onclick = () => explorer.show(j);
  const head = node("div", { class: "ux-control-head" });
  head.append(name, node("span", { class: "ux-relevance" }, relevanceText(control)));
  box.append(head);
  const write = control.kind === "category" || control.kind === "boolean"
    ? menu(explorer, j, id, head) : slider(explorer, j, id, head, box);
  explorer.inputs[j] = { box, write, name };
  write();
  return box;
}

function menu(explorer, j, id, head) {
  const control = explorer.controls[j];
  const labels = control.kind === "boolean" ? ["false", "true"] : control.labels;
  const menu = node("select", { id, "aria-label": control.name });
  labels.forEach((label, i) => menu.add(new Option(label, i)));
  menu.onchange = () => explorer.change(j, Number(menu.value));
  head.append(menu);
  return () => (menu.value = String(explorer.values[j]));
}

function slider(explorer, j, id, head, box) {
  const control = explorer.controls[j];
  const [low, high] = rangeOf(control);
  const slider = node("input", { type: "range", id, min: low, max: high, step: "any", "aria-label": control.name });
  const typed = node("input", { type: fieldType(control), step: "any", class: "ux-typed", "aria-label": `${control.name}, value` });
  slider.oninput = () => explorer.change(j, stepped(control, slider.valueAsNumber));
  slider.onkeydown = (event) => {
    const steps = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1, PageUp: 10, PageDown: -10 }[event.key];
    if (!steps) return;
    event.preventDefault();
    explorer.change(j, neighbour(control, explorer.values[j], steps, low, high));
  };
  typed.onchange = () => {
    const value = typed.valueAsNumber / (typed.type === "number" ? 1 : 86400000);
    if (Number.isFinite(value)) explorer.change(j, value);
    else explorer.inputs[j].write();
  };
  const spark = document.createElementNS(SVG, "svg");
  spark.setAttribute("class", "ux-spark-box");
  spark.setAttribute("aria-hidden", "true");
  spark.onclick = () => explorer.show(j);
  head.append(typed);
  box.append(spark, slider);
  box.spark = spark;
  return () => {
    const value = explorer.values[j];
    slider.value = value;
    slider.setAttribute("aria-valuetext", valueText(control, value));
    if (document.activeElement !== typed || typed.type !== "number") {
      typed.value = fieldText(typed.type, value);
    }
  };
}

// The value some steps further.
function neighbour(control, value, steps, low, high) {
  const now = stepped(control, value);
  if (!control.values) return clip(stepped(control, now + steps * control.step), low, high);
  const i = control.values.indexOf(now) + steps;
  return control.values[clip(i, 0, control.values.length - 1)];
}

// The nearest value that a slider has.
function stepped(control, value) {
  if (control.values) {
    const distance = (v) => Math.abs(v - value);
    return control.values.reduce((best, v) => (distance(v) < distance(best) ? v : best));
  }
  return Number((Math.round(value / control.step) * control.step).toPrecision(12));
}

// Values that a slider reaches: a tenth of the range beyond either end.
function rangeOf(control) {
  if (control.values) return [control.low, control.high];
  const beyond = 0.1 * (control.high - control.low) || Math.abs(control.low) || 1;
  const low = control.low >= 0 && control.kind === "number" ? Math.max(0, control.low - beyond) : control.low - beyond;
  return control.kind === "time" ? [0, 1] : [low, control.high + beyond];
}

// Values at which the curve of an input is computed: its own if these are few or whole numbers.
function gridOf(control, count) {
  if (control.values) return control.values;
  const [low, high] = rangeOf(control);
  if (control.kind === "number" && control.step === 1 && high - low <= CURVE_POINTS) {
    const from = Math.ceil(low), size = Math.floor(high) - from + 1;
    return Array.from({ length: size }, (_, i) => from + i);
  }
  return Array.from({ length: count }, (_, i) => low + (i / (count - 1)) * (high - low));
}

// The field in which a value is typed, and a value as its text.
function fieldType(control) {
  if (control.kind === "date") return control.step < 1 ? "datetime-local" : "date";
  return control.kind === "time" ? "time" : "number";
}

function fieldText(type, value) {
  if (type === "number") return Number.isInteger(value) ? value : Number(value.toPrecision(7));
  if (type === "time") return timeText(value).slice(0, 5);
  const [day, time = "00:00"] = dateText(value).split(" ");
  return type === "date" ? day : `${day}T${time.slice(0, 5)}`;
}

function relevanceOf(control) {
  return control.relevance ? control.relevance[0] : 0;
}

function relevanceText(control) {
  if (!control.relevance) return "";
  const [share] = control.relevance;
  if (share === 0) return "not used";
  return share < 0.001 ? "< 0.1 %" : `${(100 * share).toFixed(share < 0.1 ? 1 : 0)} %`;
}
