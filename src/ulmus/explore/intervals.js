// Intervals and probabilities on the scale of the regression, as `intervals/` computes them.

const LEAST_DOF = 3, MOST_DOF = 1e6, NOISELESS = 2 ** -26, ROUND_OFF = 1e-11;

// Degrees of freedom of a sum of two variance estimates.
function satterthwaite(noise, weights, residualDof, membersDof) {
  const total = noise + weights;
  if (!(total > 0)) return Infinity;
  const share = weights / total;
  const spent = (1 - share) ** 2 / Math.max(residualDof, 1) + share ** 2 / Math.max(membersDof, 1);
  return Math.max(1 / spent, 1);
}

function studentInterval(center, sd, level, dof) {
  const half = sd > 0 ? studentIsf((1 - level) / 2, dof) * sd : 0;
  return [center - half, center + half];
}

// Distribution of scaled residuals by their normal scores: a monotone rational spline.
class ResidualShape {
  constructor(spec) {
    this.knot = unpacked(spec.knot);
    this.score = unpacked(spec.score);
    this.slope = unpacked(spec.slope);
  }

  static left(values, x) {
    let i = 0;
    while (i < values.length - 2 && values[i + 1] < x) i++;
    return i;
  }

  scoreOf(e) {
    const { knot: x, score: z, slope: d } = this, end = x.length - 1;
    if (e < x[0]) return -Math.sqrt(z[0] ** 2 + 2 * Math.abs(z[0]) * d[0] * (x[0] - e));
    if (e > x[end]) return Math.sqrt(z[end] ** 2 + 2 * Math.abs(z[end]) * d[end] * (e - x[end]));
    const i = ResidualShape.left(x, e);
    const width = x[i + 1] - x[i], height = z[i + 1] - z[i];
    const t = (e - x[i]) / width, s = height / width, u = t * (1 - t);
    return z[i] + (height * (s * t * t + d[i] * u)) / (s + (d[i] + d[i + 1] - 2 * s) * u);
  }

  residualOf(score) {
    const { knot: x, score: z, slope: d } = this, end = z.length - 1;
    for (const [at, sign] of [[0, -1], [end, 1]]) {
      if (sign * (score - z[at]) > 0) {
        return x[at] + (sign * (score ** 2 - z[at] ** 2)) / (2 * Math.abs(z[at]) * d[at]);
      }
    }
    const i = ResidualShape.left(z, score);
    const width = x[i + 1] - x[i], height = z[i + 1] - z[i], s = height / width;
    const rise = score - z[i], bend = rise * (d[i] + d[i + 1] - 2 * s);
    const a = height * (s - d[i]) + bend, b = height * d[i] - bend, c = -s * rise;
    const root = Math.sqrt(Math.max(b * b - 4 * a * c, 0));
    return x[i] + width * Math.min(Math.max((-2 * c) / (b + root), 0), 1);
  }
}

// Everything about a new observation at a point, on the scale of the regression.
class LinkPoint {
  constructor(observations, x) {
    const model = observations.model;
    this.observations = observations;
    this.state = model.state(x);
    Object.assign(this, model.moments(this.state));
    this.unitNoise = model.unitNoise(x);
    this.noise = this.unitNoise / model.noise.weight;
    this.total = this.variance + this.noise;
    const { noise, members } = model.dof;
    const dof = satterthwaite(this.total - this.weights, this.weights, noise, members);
    this.dof = Math.min(Math.max(dof, LEAST_DOF), MOST_DOF);
  }

  get leverage() {
    return (this.storedLeverage ??= this.observations.model.leverage(this.state));
  }

  // Standard deviation that scales leave-one-out residuals.
  get residualSd() {
    const { sigma2, residual, correlated } = this.observations.model.noise;
    const ratio = this.unitNoise / (residual > 0 ? residual : 1);
    const smoothed = sigma2 * Math.max(ratio, ratio ** 0.25);
    const model = correlated ? this.given : smoothed * this.leverage;
    const variance = this.noise + model + this.map;
    return variance > 0 ? Math.sqrt(variance) : 1;
  }

  // Interval for the mean of the estimator.
  expectation(level, added = 0) {
    const { residual, members } = this.observations.model.dof;
    const dof = satterthwaite(this.variance - this.weights, this.weights, residual, members);
    const variance = Math.max(this.variance + added, 0.1 * this.variance);
    return studentInterval(this.mean, Math.sqrt(variance), level, dof);
  }

  // Interval for a new observation at the level of an index.
  observation(i) {
    const { levels, ranks, residuals, widest, shape } = this.observations;
    const level = levels[i];
    if (residuals && ranks[i]) return this.conformal(ranks[i]);
    if (!residuals && shape) {
      const quantile = (p) => this.mean + this.residualSd * shape.residualOf(normalQuantile(p));
      return [quantile((1 - level) / 2), quantile((1 + level) / 2)];
    }
    const student = studentInterval(this.mean, Math.sqrt(this.total), level, this.dof);
    if (!residuals) return student;
    const wide = this.conformal(widest);
    return [Math.min(student[0], wide[0]), Math.max(student[1], wide[1])];
  }

  // Jackknife+ with residuals in units of their standard deviations.
  conformal({ ranks: [low, high], signed }) {
    const { residuals, shifts, sorted } = this.observations, scale = this.residualSd;
    if (!shifts) {
      const [below, above] = signed ? [sorted.signed, sorted.signed] : [sorted.negative, sorted.size];
      return [this.mean + scale * below[low], this.mean + scale * above[high]];
    }
    const n = residuals.length, below = new Float64Array(n), above = new Float64Array(n);
    const shift = shifts.times(this.state.coordinates);
    for (let i = 0; i < n; i++) {
      const size = signed ? residuals[i] : Math.abs(residuals[i]);
      below[i] = (signed ? size : -size) * scale - shift[i];
      above[i] = size * scale - shift[i];
    }
    below.sort();
    above.sort();
    const ends = [below[low], above[high]];
    if (ends[0] > ends[1]) {
      let i = 0;
      while (below[n - 1 - i] > above[i]) i++;
      ends[0] = ends[1] = 0.5 * (below[n - 1 - i] + above[i]);
    }
    return ends.map((end) => this.mean + end);
  }

  // Probability that an observation exceeds a value.
  sf(value) {
    const { shape } = this.observations;
    const least = NOISELESS * Math.max(Math.abs(this.mean), 1e-292);
    const own = shape ? this.residualSd : Math.sqrt(this.total);
    const scale = own > ROUND_OFF * Math.abs(this.mean) ? own : least;
    const e = (value - this.mean) / scale;
    return shape ? normalCdf(-shape.scoreOf(e)) : studentSf(e, this.dof);
  }

  // Whether the point is farther from the training rows than these are from each other.
  get isOutside() {
    const limit = this.observations.leverageLimit;
    return limit !== undefined && this.leverage > limit;
  }
}

class Observations {
  constructor(spec, model) {
    this.model = model;
    this.levels = spec.levels;
    this.ranks = spec.ranks;
    this.widest = spec.widest;
    this.residuals = spec.residuals && unpacked(spec.residuals);
    this.shifts = spec.shifts && new Rows(spec.shifts);
    this.shape = spec.shape && new ResidualShape(spec.shape);
    if (this.residuals) {
      const size = this.residuals.map(Math.abs).sort();
      const negative = size.map((value) => -value).sort();
      this.sorted = { signed: this.residuals.slice().sort(), size, negative };
    }
    this.leverageLimit = spec.leverage_limit;
    this.family = spec.family ? responseFamily(spec.family) : null;
  }

  at(x) {
    return new LinkPoint(this, x);
  }
}
