// Values of the controls as inputs of the model, as the columns of `ulmus.tables` encode them.

const SEASONS = { year: 365.2425, week: 7, day: 1 };
const HARMONICS = [1, 2];

class Columns {
  constructor(controls) {
    this.controls = controls;
  }

  // Inputs of the model for one value of each control: a number, or the index of a category.
  encoded(values) {
    const x = [];
    this.controls.forEach((control, j) => x.push(...Columns.inputs(control, values[j])));
    return Float64Array.from(x);
  }

  static inputs(control, value) {
    if (control.kind === "category") return control.inputs[value];
    const out = [value];
    for (const season of control.seasons ?? []) {
      if (season === "week") {
        const weekday = ((Math.floor(value) % 7) + 7) % 7;
        for (let k = 0; k < 7; k++) out.push(weekday === k ? 1 : 0);
        continue;
      }
      const phase = (2 * Math.PI * value) / SEASONS[season];
      for (const k of HARMONICS) out.push(Math.sin(k * phase), Math.cos(k * phase));
    }
    if (control.missing) out.push(0);
    return out;
  }
}
