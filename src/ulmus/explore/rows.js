// Some training rows, and where they are behind the input map.
class TrainingRows {
  constructor(spec, model) {
    this.model = model;
    this.index = unpacked(spec.index);
    this.codes = unpacked(spec.codes);
    this.y = unpacked(spec.y);
    this.mapped = unpacked(spec.mapped);
    this.matrix = spec.matrix && unpacked(spec.matrix);
    this.diagonal = spec.diagonal;
    this.width = spec.codes.shape[1];
  }

  value(i, j) {
    return this.codes[i * this.width + j];
  }

  column(j) {
    const out = [];
    for (let i = 0; i < this.index.length; i++) out.push(this.value(i, j));
    return out.filter(Number.isFinite);
  }

  // Positions of the nearest rows, by inputs behind the map.
  nearest(x, count) {
    const z = this.mappedInputs(x), d = z.length, n = this.index.length;
    const distance = new Float64Array(n);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < d; j++) distance[i] += (this.mapped[i * d + j] - z[j]) ** 2;
    }
    return [...distance.keys()].sort((a, b) => distance[a] - distance[b]).slice(0, count);
  }

  mappedInputs(x) {
    const z = this.model.inputs[this.model.predictor.inputs].of(x);
    if (!this.matrix) return z;
    const d = z.length;
    if (this.diagonal) return z.map((value, j) => value * this.matrix[j]);
    const out = new Float64Array(d);
    for (let i = 0; i < d; i++) for (let j = 0; j < d; j++) out[j] += z[i] * this.matrix[i * d + j];
    return out;
  }
}
