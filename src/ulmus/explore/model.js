// Predictions and their variances, as `model.py` describes them.

// A typed array of numbers that were written by `arrays.py`.
function unpacked(spec) {
  const text = atob(spec.data);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  const types = { f8: Float64Array, f4: Float32Array, i4: Int32Array, i2: Int16Array };
  return new types[spec.type](bytes.buffer);
}

// Products of the rows of a matrix with vectors; the rows are whole numbers of a unit each, and
// those that are refined have remainders.
class Rows {
  constructor(spec) {
    [this.count, this.width] = spec.shape;
    this.values = unpacked(spec);
    this.unit = unpacked(spec.unit);
    if (!spec.refined) return;
    this.refined = unpacked(spec.refined.rows);
    this.remainders = new Rows(spec.refined.remainders);
  }

  times(vector) {
    const out = this.rounded(vector);
    if (!this.refined) return out;
    const more = this.remainders.times(vector);
    this.refined.forEach((row, i) => (out[row] += more[i]));
    return out;
  }

  // Four rows at a time, which reads the vector less often.
  rounded(vector) {
    const { count, width, values, unit } = this;
    const out = new Float64Array(count);
    let i = 0;
    for (; i + 4 <= count; i += 4) {
      let a = 0, b = 0, c = 0, d = 0;
      const first = i * width, second = first + width, third = second + width, last = third + width;
      for (let j = 0; j < width; j++) {
        const value = vector[j];
        a += values[first + j] * value;
        b += values[second + j] * value;
        c += values[third + j] * value;
        d += values[last + j] * value;
      }
      out[i] = unit[i] * a;
      out[i + 1] = unit[i + 1] * b;
      out[i + 2] = unit[i + 2] * c;
      out[i + 3] = unit[i + 3] * d;
    }
    for (; i < count; i++) out[i] = unit[i] * dot(values, vector, i * width, width);
    return out;
  }
}

// The numbers of a matrix, whose rows may be whole numbers of a unit each.
function restored(spec) {
  if (!spec.unit) return unpacked(spec);
  const values = unpacked(spec), unit = unpacked(spec.unit), width = spec.shape[1];
  return Float64Array.from(values, (value, i) => value * unit[Math.floor(i / width)]);
}

// A symmetric matrix by its lower triangle, whose entries are whole numbers of a unit.
class Triangle {
  constructor(spec) {
    this.values = unpacked(spec);
    this.unit = unpacked(spec.unit)[0];
  }

  // c'Gc.
  form(c) {
    const { values } = this;
    let total = 0;
    for (let i = 0, at = 0; i < c.length; i++) {
      let row = 0;
      for (let j = 0; j < i; j++) row += values[at++] * c[j];
      total += c[i] * (2 * row + values[at++] * c[i]);
    }
    return this.unit * total;
  }
}

// Standardised columns, normal scores and indicators.
class Inputs {
  constructor(spec) {
    this.offset = unpacked(spec.offset);
    this.scale = unpacked(spec.scale);
    this.scores = spec.scores.map((one) => ({
      column: one.column,
      knots: unpacked(one.knots),
      heights: unpacked(one.heights),
      pieces: one.pieces.map(unpacked),
    }));
    this.indicators = spec.indicators.map((one) => ({ ...one, values: unpacked(one.values) }));
    const levels = this.indicators.reduce((sum, one) => sum + one.values.length, 0);
    this.size = this.offset.length + this.scores.length + levels;
  }

  // A model of single precision rounds its inputs, such as days since 1970, before all else.
  of(given) {
    const x = this.offset instanceof Float32Array ? Float32Array.from(given) : given;
    const z = new Float64Array(this.size);
    const d = this.offset.length;
    for (let j = 0; j < d; j++) z[j] = (x[j] - this.offset[j]) / this.scale[j];
    let at = d;
    for (const one of this.scores) z[at++] = Inputs.score(one, x[one.column]);
    for (const one of this.indicators) {
      for (const value of one.values) {
        z[at++] = Math.abs(value - x[one.column]) <= one.tolerance ? 1 : 0;
      }
    }
    return z;
  }

  // The monotone cubic between two knots.
  static score({ knots, heights, pieces }, value) {
    const last = knots.length - 2;
    const x = Math.min(Math.max(value, knots[0]), knots[last + 1]);
    let left = 0, right = last;
    while (left < right) {
      const middle = (left + right + 1) >> 1;
      if (knots[middle] <= x) left = middle;
      else right = middle - 1;
    }
    const share = (x - knots[left]) / (knots[left + 1] - knots[left]);
    const [rise, start, end] = pieces.map((piece) => piece[left]);
    const bend = start + end - 2 * rise;
    return heights[left] + share * (start + share * (3 * rise - 2 * start - end + share * bend));
  }
}

// Each activation returns its value, and its slope from argument and value.
const ACTIVATIONS = {
  tanh: [Math.tanh, (u, g) => 1 - g * g],
  logistic: [(u) => 1 / (1 + Math.exp(-u)), (u, g) => g * (1 - g)],
  relu: [(u) => Math.max(u, 0), (u) => (u > 0 ? 1 : 0)],
  erf: [erf, (u) => (2 / Math.sqrt(Math.PI)) * Math.exp(-u * u)],
  cos: [Math.cos, (u) => -Math.sin(u)],
  rbf: [(u) => Math.exp(-u * u), (u, g) => -2 * u * g],
  identity: [(u) => u, () => 1],
};

// Hidden features of all members, and the output of an ensemble.
class Predictor {
  constructor(spec) {
    const layer = spec.layer;
    this.inputs = layer.inputs;
    [this.members, this.units] = layer.size;
    this.active = unpacked(layer.active);
    this.constant = layer.constant;
    this.weights = restored(layer.weights);
    this.biases = unpacked(layer.biases);
    [this.activation, this.slope] = ACTIVATIONS[layer.activation];
    this.coefficients = unpacked(spec.coefficients);
    this.shift = spec.shift;
    this.width = this.units + this.constant;
  }

  // Features at all inputs of the layer, member after member; slopes of the units too, if an
  // array for them is given.
  features(inputs, slopes) {
    const { members, units, active, constant, weights, biases } = this, d = active.length;
    const z = new Float64Array(d);
    for (let j = 0; j < d; j++) z[j] = inputs[active[j]];
    const h = new Float64Array(members * this.width);
    let at = 0, row = 0;
    for (let m = 0; m < members; m++) {
      if (constant) h[at++] = 1;
      for (let k = 0; k < units; k++, row++) {
        let u = biases[row];
        for (let j = 0, w = row * d; j < d; j++, w++) u += weights[w] * z[j];
        const g = this.activation(u);
        if (slopes) slopes[row] = this.slope(u, g);
        h[at++] = g;
      }
    }
    return h;
  }

  // Predictions of the members.
  outputs(h) {
    const out = new Float64Array(this.members);
    for (let m = 0, at = 0; m < this.members; m++) {
      let sum = this.shift;
      for (let k = 0; k < this.width; k++, at++) sum += this.coefficients[at] * h[at];
      out[m] = sum;
    }
    return out;
  }

  mean(z) {
    return average(this.outputs(this.features(z)));
  }

  // Derivative of the mean by all inputs of the layer, of which there are some.
  gradient(slopes, size) {
    const { members, units, active, constant, weights, coefficients } = this, d = active.length;
    const out = new Float64Array(size);
    let row = 0;
    for (let m = 0; m < members; m++) {
      for (let k = 0; k < units; k++, row++) {
        const factor = (coefficients[m * this.width + constant + k] * slopes[row]) / members;
        for (let j = 0, w = row * d; j < d; j++, w++) out[active[j]] += factor * weights[w];
      }
    }
    return out;
  }
}

function average(values) {
  let sum = 0;
  for (const value of values) sum += value;
  return sum / values.length;
}

function dot(a, b, start, length) {
  let sum = 0;
  for (let i = 0; i < length; i++) sum += a[start + i] * b[i];
  return sum;
}

// The quantities at a point that are linear in its features; differences of points have those of
// their differences.
class LinearState {
  constructor(members, alpha, map, coordinates) {
    Object.assign(this, { members, alpha, map, coordinates });
  }

  combined(factor, other, otherFactor) {
    const part = (a, b) => a.map((value, i) => factor * value + otherFactor * b[i]);
    const names = ["members", "alpha", "map", "coordinates"];
    return new LinearState(...names.map((name) => part(this[name], other[name])));
  }
}

class Model {
  constructor(spec) {
    this.inputs = spec.inputs.map((one) => new Inputs(one));
    this.predictor = new Predictor(spec.mean);
    const forms = spec.forms;
    this.features = unpacked(forms.features);
    this.coordinates = new Rows(forms.coordinates);
    this.lengths = new Triangle(forms.lengths);
    this.single = new Triangle(forms.single);
    this.distinct = new Triangle(forms.distinct);
    this.scale = forms.scale;
    this.shares = forms.shares;
    this.alpha = spec.alpha && unpacked(spec.alpha);
    this.folds = spec.folds.map((one) => new Predictor(one));
    this.map = spec.map && {
      ...spec.map,
      changes: unpacked(spec.map.changes),
      slopes: unpacked(spec.map.slopes),
      covariances: unpacked(spec.map.covariances),
      count: spec.map.changes.shape[0],
    };
    this.noise = { ...spec.noise, logs: spec.noise.logs && new Predictor(spec.noise.logs) };
    this.dof = spec.dof;
  }

  // Inputs of each layer at a point, computed when first used.
  layerInputs(x) {
    const found = [];
    return (i) => (found[i] ??= this.inputs[i].of(x));
  }

  mean(x) {
    return this.predictor.mean(this.inputs[this.predictor.inputs].of(x));
  }

  state(x) {
    const inputs = this.layerInputs(x);
    const z = inputs(this.predictor.inputs);
    const slopes = this.map ? new Float64Array(this.predictor.biases.length) : null;
    const h = this.predictor.features(z, slopes);
    const width = h.length;
    const alpha = this.alpha ? [dot(this.alpha, h, 0, width), dot(this.alpha, h, width, width)] : [];
    const map = this.map
      ? this.mapShifts(z, h, slopes)
      : this.folds.map((fold) => fold.mean(inputs(fold.inputs)));
    const used = new Float64Array(this.features.length);
    for (let i = 0; i < used.length; i++) used[i] = h[this.features[i]];
    return new LinearState(this.predictor.outputs(h), alpha, map, this.coordinates.times(used));
  }

  // Shifts due to the choice of the map to first order: those that are added, then subtracted.
  mapShifts(z, h, slopes) {
    const { count, changes, diagonal } = this.map;
    const gradient = this.predictor.gradient(slopes, z.length);
    const d = z.length;
    const added = [], subtracted = [];
    for (let r = 0; r < count; r++) {
      let along = 0;
      for (let i = 0; i < d; i++) {
        const change = diagonal
          ? changes[r * d + i] * gradient[i]
          : dot(changes, gradient, (r * d + i) * d, d);
        along += z[i] * change;
      }
      added.push(along + dot(this.map.slopes, h, r * h.length, h.length));
      subtracted.push(dot(this.map.covariances, h, r * h.length, h.length));
    }
    return [...added, ...subtracted];
  }

  // Estimate and variance of a functional with a linear state.
  moments(state) {
    const M = state.members.length;
    const mean = average(state.members);
    let squares = 0;
    for (const value of state.members) squares += (value - mean) ** 2;
    const spread = squares / Math.max(M - 1, 1);
    const A = Math.max(this.single.form(state.coordinates), 0) * this.scale;
    const U = this.distinct.form(state.coordinates) * this.scale;
    let given = this.shares[0] * A + this.shares[1] * U + spread / M;
    if (given < 0) {
      const naive = A / M + ((M - 1) / M) * U;
      given = (naive > 0 ? naive : A / M) + Math.max(spread - (A - U), 0) / M;
    }
    const alpha = state.alpha.length ? Math.max(state.alpha[0] ** 2 - state.alpha[1] ** 2, 0) : 0;
    const map = this.mapVariance(state.map);
    const variance = given + alpha + map;
    return { mean, variance, given, map, weights: Math.min(spread / M, variance) };
  }

  mapVariance(shifts) {
    if (!shifts.length) return 0;
    let total = 0;
    if (this.map) {
      const half = shifts.length / 2;
      shifts.forEach((value, i) => (total += (i < half ? 1 : -1) * value * value));
      return Math.max(total, 0);
    }
    const center = average(shifts);
    for (const value of shifts) total += (value - center) ** 2;
    return total / (shifts.length - 1);
  }

  leverage(state) {
    return Math.max(this.lengths.form(state.coordinates), 0);
  }

  // Variance of an observation of weight one around its prediction.
  unitNoise(x) {
    const { logs, low, high, factor, share, constant } = this.noise;
    if (!logs) return constant;
    const value = logs.mean(this.inputs[logs.inputs].of(x));
    return factor * Math.exp(share * Math.min(Math.max(value, low), high));
  }
}
