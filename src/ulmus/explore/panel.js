// The panel: controls, results, curve, differences from the reference, and nearest rows.

// Points of curves: of the drawn one, of one while inputs move, and of small ones.
const CURVE_POINTS = 61, COARSE_POINTS = 25, SPARK_POINTS = 25;
const MOST_CATEGORIES = 30, NEAREST = 5, SHOWN_CONTROLS = 12;

class Explorer {
  constructor(root, spec) {
    this.root = root;
    this.spec = spec;
    this.controls = spec.controls;
    this.columns = new Columns(this.controls);
    this.model = new Model(spec.prediction);
    this.observations = new Observations(spec.observations, this.model);
    this.rows = spec.rows && new TrainingRows(spec.rows, this.model);
    this.start = this.controls.map((control) => control.start);
    this.values = [...this.start];
    this.reference = [...this.start];
    this.level = spec.level;
    this.threshold = null;
    this.order = this.controls.map((_, j) => j)
      .sort((a, b) => relevanceOf(this.controls[b]) - relevanceOf(this.controls[a]) || a - b);
    this.shown = this.order[0];
    this.readLink();
    this.build();
    this.update();
  }

  find(name) {
    return this.root.querySelector(`.ux-${name}`);
  }

  // ---------------------------------------------------------- building

  build() {
    const { spec } = this;
    this.find("target").textContent = spec.target;
    const level = this.find("level");
    spec.observations.levels.forEach((value, i) => {
      level.add(new Option(`${Number((100 * value).toFixed(4))} %`, i, false, i === this.level));
    });
    level.onchange = () => this.set(() => (this.level = Number(level.value)));
    const threshold = this.find("threshold");
    threshold.value = this.threshold ?? "";
    threshold.oninput = () => this.set(() => {
      const value = threshold.valueAsNumber;
      this.threshold = Number.isFinite(value) ? value : null;
    });
    this.buildControls();
    const chosen = this.find("shown");
    for (const j of this.order) chosen.add(new Option(this.controls[j].name, j, false, j === this.shown));
    chosen.onchange = () => this.show(Number(chosen.value));
    this.find("pin").onclick = () => this.set(() => (this.reference = [...this.values]));
    this.find("reset").onclick = () => this.set(() => {
      this.values = [...this.start];
      this.reference = [...this.start];
      this.writeControls();
    });
    this.find("link").onclick = (e) => copied(this, e.target, this.link());
    this.find("row").onclick = (e) => copied(this, e.target, this.tableRow());
    this.find("nearest-box").hidden = !this.rows;
    this.find("link").hidden = !this.spec.reads_link;
    this.find("notes").replaceChildren(...spec.notes.map((text) => node("li", {}, text)));
    this.dragOnCurve();
    if (this.spec.reads_link) {
      addEventListener("hashchange", () => this.set(() => {
        this.readLink();
        this.writeControls();
      }));
    }
    new ResizeObserver(() => this.resize()).observe(this.find("results"));
  }

  buildControls() {
    this.inputs = [];
    const few = this.find("controls"), more = this.find("more-controls");
    this.order.forEach((j, i) => (i < SHOWN_CONTROLS ? few : more).appendChild(controlBox(this, j)));
    const rest = this.order.length - SHOWN_CONTROLS;
    this.find("more").hidden = rest <= 0;
    if (rest > 0) this.find("more-title").textContent = `${rest} further inputs, in the order of their relevance`;
  }

  // ---------------------------------------------------------- changes

  set(change) {
    change();
    this.update();
  }

  change(j, value) {
    this.values[j] = value;
    this.inputs[j].write();
    this.update(j);
  }

  show(j) {
    this.shown = j;
    this.find("shown").value = String(j);
    this.update();
  }

  writeControls() {
    for (const { write } of this.inputs) write();
    this.find("level").value = String(this.level);
    this.find("threshold").value = this.threshold ?? "";
  }

  // Results are drawn before the next frame, small curves and the table when nothing moves.
  update(changed) {
    if (changed !== this.shown) this.curve = null;
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = null;
      this.draw();
      clearTimeout(this.later);
      this.later = setTimeout(() => this.drawLater(), 60);
    });
  }

  resize() {
    const width = this.find("results").clientWidth;
    if (width && width !== this.width) {
      this.width = width;
      this.update(this.shown);
    }
  }

  point(values) {
    return new Point(this.observations, this.columns.encoded(values));
  }

  results(values) {
    const point = this.point(values), level = this.spec.observations.levels[this.level];
    return {
      point,
      estimate: point.estimate,
      mean: point.meanInterval(level),
      observation: point.observationInterval(this.level),
    };
  }

  difference(point, reference, level) {
    return difference(this.model, point, reference, level);
  }

  // The address that opens the page at the present values.
  link() {
    return linkOf(this);
  }

  // Take the values of the address by which the page was opened.
  readLink() {
    readLink(this);
  }

  // The present values and results for a spreadsheet.
  tableRow() {
    return tableRow(this);
  }

  with(j, value, base = this.values) {
    const values = [...base];
    values[j] = value;
    return values;
  }

  // ---------------------------------------------------------- drawing

  draw() {
    if (!this.find("results").clientWidth) return; // folded: drawn when it is opened
    const now = this.results(this.values);
    this.now = now;
    const size = now.observation[1] - now.observation[0];
    this.size = Number.isFinite(size) && size > 0 ? size / 4 : now.point.standardError;
    this.drawAnswer(now);
    this.drawStatus(now);
    this.drawCurve();
  }

  text(value) {
    return numberText(value, this.size);
  }

  drawAnswer(now) {
    const level = this.find("level").selectedOptions[0]?.text ?? "";
    const se = now.point.standardError, between = ([a, b]) => `${this.text(a)} to ${this.text(b)}`;
    this.find("estimate").textContent = this.text(now.estimate);
    this.find("se").textContent = `standard error ${numberText(se, se)}`;
    this.find("observation").textContent = between(now.observation);
    this.find("mean").textContent = between(now.mean);
    for (const one of this.root.querySelectorAll(".ux-level-text")) one.textContent = level;
    const shown = this.threshold !== null;
    this.find("exceedance-row").hidden = !shown;
    if (shown) {
      this.find("exceedance-name").textContent = `Probability that an observation exceeds ${this.threshold}`;
      this.find("exceedance").textContent = probabilityText(now.point.exceedance(this.threshold));
    }
    const reference = this.isReference ? null : this.point(this.reference).estimate;
    drawRuler(this.find("ruler"), this.find("answer").clientWidth - 34, now, reference, this.observed, this.threshold);
    this.find("ruler").setAttribute("aria-label", `${this.spec.target}: estimate ${this.text(now.estimate)}, new observation ${between(now.observation)}, mean ${between(now.mean)}`);
  }

  get isReference() {
    return this.values.every((value, j) => value === this.reference[j]);
  }

  // Observations of the training rows, for the ruler.
  get observed() {
    if (this.storedObserved) return this.storedObserved;
    const values = this.rows ? [...this.rows.y] : [];
    const range = values.length ? limits(values, 0) : [...this.now.observation];
    const span = range[1] - range[0];
    this.storedObserved = { values, range, floor: range[0] - span, ceiling: range[1] + span };
    return this.storedObserved;
  }

  drawStatus(now) {
    const beyond = [];
    this.controls.forEach((control, j) => {
      if (control.kind === "category" || control.kind === "boolean") return;
      const value = this.values[j], slack = 1e-9 * (control.high - control.low);
      const isBeyond = value < control.low - slack || value > control.high + slack;
      this.inputs[j].box.classList.toggle("ux-is-beyond", isBeyond);
      if (isBeyond) beyond.push(control.name);
    });
    const status = this.find("status");
    const isOutside = now.point.link.isOutside;
    status.className = `ux-status ${beyond.length || isOutside ? "ux-warn" : "ux-ok"}`;
    status.textContent = beyond.length
      ? `Extrapolating in ${beyond.join(", ")}: outside the range of the training rows.`
      : isOutside
        ? "An unusual combination of inputs: farther from the training rows than these are from each other."
        : "Inside the range of the training rows.";
  }

  drawCurve() {
    const control = this.controls[this.shown], svg = this.find("curve");
    const width = this.find("curve-box").clientWidth;
    if (!this.curve) this.curve = this.computedCurve(COARSE_POINTS);
    const curve = { ...this.curve, value: this.values[this.shown], now: this.now };
    const isMenu = control.kind === "category" || control.kind === "boolean";
    const labels = control.kind === "boolean" ? { ...control, labels: ["false", "true"] } : control;
    this.drawn = isMenu
      ? drawCategories(svg, width, curve, labels, this.threshold)
      : drawCurve(svg, width, curve, control, this.threshold);
    svg.setAttribute("aria-label", `Prediction of ${this.spec.target} by ${control.name}, other inputs as they are`);
    for (const [j, { name }] of this.inputs.entries()) name.setAttribute("aria-pressed", String(j === this.shown));
  }

  computedCurve(count) {
    const j = this.shown, control = this.controls[j];
    const at = (value) => ({ value, ...this.results(this.with(j, value)) });
    if (control.kind === "boolean") return { points: [0, 1].map(at) };
    if (control.kind === "category") {
      const indices = control.labels.map((_, i) => i);
      const few = indices.slice(0, MOST_CATEGORIES);
      if (!few.includes(this.values[j])) few[few.length - 1] = this.values[j];
      this.find("curve-note").textContent = few.length < indices.length ? `The first ${few.length} of ${indices.length} categories.` : "";
      return { points: few.map(at) };
    }
    this.find("curve-note").textContent = "";
    const [low, high] = rangeOf(control), rug = this.rows ? this.rows.column(j) : [];
    return { points: gridOf(control, count).map(at), low, high, rug, count };
  }

  dragOnCurve() {
    const svg = this.find("curve");
    const move = (event) => {
      const control = this.controls[this.shown], box = svg.getBoundingClientRect();
      if (this.drawn.rowAt) return this.change(this.shown, this.drawn.rowAt(event.clientY - box.top));
      const [low, high] = rangeOf(control);
      const value = stepped(control, this.drawn.valueAt(event.clientX - box.left));
      return this.change(this.shown, clip(value, low, high));
    };
    svg.onpointerdown = (event) => {
      svg.setPointerCapture(event.pointerId);
      move(event);
    };
    svg.onpointermove = (event) => event.buttons && move(event);
  }

  drawLater() {
    if (!this.curve) return; // the next frame draws it
    if (this.curve.count < CURVE_POINTS) {
      this.curve = this.computedCurve(CURVE_POINTS);
      this.drawCurve();
    }
    this.drawDifferences();
    this.drawNearest();
    this.drawSparks();
    this.root.dispatchEvent(new CustomEvent("ulmus-explorer-drawn"));
  }

  // Small curves of the mean, on a common scale, so that flat ones have no effect.
  drawSparks() {
    const curves = [];
    this.controls.forEach((control, j) => {
      const { spark } = this.inputs[j].box;
      if (!spark || !spark.clientWidth) return;
      const [low, high] = rangeOf(control);
      const points = gridOf(control, SPARK_POINTS).map((value) => [value, this.meanAt(this.with(j, value))]);
      curves.push({ j, low, high, points, spark });
    });
    const domain = limits(curves.flatMap((one) => one.points.map((p) => p[1])), 0.08);
    for (const { j, low, high, points, spark } of curves) {
      drawSpark(spark, spark.clientWidth, points, domain, low, high, this.values[j]);
    }
  }

  // The estimate alone.
  meanAt(values) {
    const x = this.columns.encoded(values), mean = this.model.mean(x), { family } = this.observations;
    return family ? family.mean(mean, Math.sqrt(this.model.unitNoise(x) / this.model.noise.weight)) : mean;
  }

  drawDifferences() {
    const table = this.find("differences"), level = this.spec.observations.levels[this.level];
    const changed = this.order.filter((j) => this.values[j] !== this.reference[j]);
    this.find("differences-note").textContent = changed.length
      ? "Each line changes one input of the reference; the last one changes all. Intervals are for the difference of the means."
      : "Move an input to see what it changes. “Set as reference” keeps the present values for comparison.";
    table.hidden = !changed.length;
    if (!changed.length) return;
    const base = this.point(this.reference), body = table.tBodies[0];
    const lines = changed.map((j) => [
      this.controls[j].name,
      `${valueText(this.controls[j], this.reference[j])} → ${valueText(this.controls[j], this.values[j])}`,
      this.difference(this.point(this.with(j, this.values[j], this.reference)), base, level),
    ]);
    if (changed.length > 1) lines.push(["all inputs", "", this.difference(this.now.point, base, level)]);
    body.replaceChildren(...lines.map(([name, change, found]) => this.differenceRow(name, change, found)));
  }

  differenceRow(name, change, { estimate, standardError, interval }) {
    const row = document.createElement("tr");
    const text = (value) => numberText(value, standardError || this.size);
    const signed = (value) => (value > 0 ? `+${text(value)}` : text(value));
    row.append(
      node("th", { scope: "row" }, name),
      node("td", {}, change),
      node("td", { class: "ux-number" }, signed(estimate)),
      node("td", { class: "ux-number" }, `${signed(interval[0])} to ${signed(interval[1])}`),
    );
    return row;
  }

  drawNearest() {
    if (!this.rows) return;
    const table = this.find("nearest"), found = this.rows.nearest(this.columns.encoded(this.values), NEAREST);
    const shown = this.order.filter((j) => this.controls[j].shown).slice(0, 6);
    const head = ["row", this.spec.target, ...shown.map((j) => this.controls[j].name)];
    table.tHead.rows[0].replaceChildren(...head.map((text) => node("th", { scope: "col" }, text)));
    table.tBodies[0].replaceChildren(...found.map((i) => {
      const row = document.createElement("tr");
      row.append(node("th", { scope: "row" }, String(this.rows.index[i] + 1)), node("td", { class: "ux-number" }, numberText(this.rows.y[i], this.size)));
      for (const j of shown) row.append(node("td", {}, valueText(this.controls[j], this.rows.value(i, j))));
      return row;
    }));
  }
}

function node(name, attributes, text) {
  const out = document.createElement(name);
  for (const [key, value] of Object.entries(attributes ?? {})) out.setAttribute(key, value);
  if (text !== undefined) out.textContent = text;
  return out;
}
