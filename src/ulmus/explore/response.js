// Results on the scale of y, as `core/response` and `intervals/response.py` compute them.

const LARGEST_EXPONENT = 300, LARGEST_SCORE = 4, LARGEST_LOG_MEAN = 350;
const LEAST_DISPERSION = 1e-6, MOST_DISPERSION = 1e3;

const clip = (x, low, high) => Math.min(Math.max(x, low ?? -Infinity), high ?? Infinity);
const logistic = (u) => 1 / (1 + Math.exp(-u));

// Increasing transformations: forward, inverse, and the slope of the inverse.
const TRANSFORMS = {
  identity: () => ({ forward: (y) => y, inverse: (z) => z, slope: () => 1 }),
  log: ({ low, start, domain }) => ({
    forward: (y) => Math.log(y - low + start),
    inverse: (z) => low + Math.exp(clip(z, ...domain)) - start,
    slope: (z) => (inside(z, domain) ? Math.exp(z) : 0),
  }),
  sqrt: ({ low }) => ({
    forward: (y) => Math.sqrt(y - low),
    inverse: (z) => low + Math.max(z, 0) ** 2,
    slope: (z) => 2 * Math.max(z, 0),
  }),
  logit: ({ low, high, squeeze, domain }) => {
    const range = high - low, kept = 1 - 2 * squeeze;
    return {
      forward: (y) => {
        const share = squeeze + (kept * (y - low)) / range;
        return Math.log(share / (1 - share));
      },
      inverse: (z) => low + range * clip((logistic(z) - squeeze) / kept, 0, 1),
      slope: (z) => (inside(z, domain) ? (range * logistic(z) * logistic(-z)) / kept : 0),
    };
  },
  "yeo-johnson": ({ lmbda, center, scale, domain }) => {
    const standard = (z) => {
      const v = clip(z, ...domain);
      return v >= 0
        ? Math.expm1(logOfPower(v, lmbda))
        : -Math.expm1(logOfPower(-v, 2 - lmbda));
    };
    return {
      forward: (y) => {
        const u = (y - center) / scale;
        return u >= 0 ? power(Math.log1p(u), lmbda) : -power(Math.log1p(-u), 2 - lmbda);
      },
      inverse: (z) => center + scale * standard(z),
      slope: (z) => {
        if (!inside(z, domain)) return 0;
        const u = standard(z);
        return scale * Math.exp(-Math.sign(u) * (lmbda - 1) * Math.log1p(Math.abs(u)));
      },
    };
  },
};

function inside(z, [low, high]) {
  return z >= (low ?? -Infinity) && z <= (high ?? Infinity);
}

function power(log, lmbda) {
  return Math.abs(lmbda) < 1e-8 ? log : Math.expm1(Math.min(lmbda * log, 700)) / lmbda;
}

function logOfPower(z, lmbda) {
  if (Math.abs(lmbda) < 1e-8) return Math.min(z, LARGEST_EXPONENT);
  return Math.min(Math.log1p(Math.max(lmbda * z, -1 + 1e-16)) / lmbda, LARGEST_EXPONENT);
}

// Observations whose transformed values are predictions plus noise; means by smearing.
class Transformed {
  constructor(spec) {
    this.transform = TRANSFORMS[spec.transform.name](spec.transform);
    this.low = spec.low;
    this.high = spec.high;
    this.least = spec.least ?? -Infinity;
    this.most = spec.most ?? Infinity;
    this.value = unpacked(spec.nodes.value);
    this.weight = unpacked(spec.nodes.weight);
    this.dof = spec.nodes.dof;
  }

  inverse(z) {
    return clip(this.transform.inverse(z), this.low, this.high);
  }

  inverseSlope(z) {
    const y = this.transform.inverse(z);
    return inside(y, [this.low, this.high]) ? this.transform.slope(z) : 0;
  }

  expectation(f, m, s) {
    let sum = 0;
    for (let i = 0; i < this.value.length; i++) sum += this.weight[i] * f(m + s * this.value[i]);
    return sum;
  }

  mean(m, s) {
    return this.expectation((z) => this.inverse(z), m, s);
  }

  slope(m, s) {
    return this.expectation((z) => this.inverseSlope(z), m, s);
  }

  // Errors of the mean by estimating the distribution of the residuals.
  influence(m, s) {
    const { value, weight, dof } = this, J = value.length;
    const mean = this.mean(m, s), steep = s * this.slope(m, s);
    const out = new Float64Array(J + 2);
    let b = 0;
    for (let i = 0; i < J; i++) {
      const root = Math.sqrt(weight[i] / dof);
      const psi = this.inverse(m + s * value[i]) - mean - value[i] * steep;
      out[i] = root * psi;
      b += root * Math.sqrt(weight[i]) * value[i] * psi;
    }
    let a = steep / Math.sqrt(dof);
    if (!(Math.abs(b) > 1e-9 * Math.abs(a))) a = 0;
    out[J] = (a + b) / Math.SQRT2;
    out[J + 1] = (a - b) / Math.SQRT2;
    return out;
  }

  forward(y) {
    return this.transform.forward(clip(y, this.least, this.most));
  }

  interval(point, i) {
    return point.observation(i).map((z) => this.inverse(z));
  }

  sf(y, point) {
    if (y < this.least) return 1;
    return y >= this.most ? 0 : point.sf(this.forward(y));
  }
}

// Families whose regression is that of the logarithm of the mean.
class LogMean {
  constructor(spec) {
    Object.assign(this, spec);
  }

  bounded(m) {
    return clip(m, ...this.limits);
  }

  standardised(m) {
    return clip((m - this.center) / this.spread, -LARGEST_SCORE, LARGEST_SCORE);
  }

  influence() {
    return new Float64Array(1);
  }

  // Equal tails of a calibrated error probability.
  interval(point, i) {
    const error = this.errors[i];
    return [this.quantile(0.5 * error, point), this.quantile(Math.min(1 - 0.5 * error + 1e-12, 1), point)];
  }
}

class Counts extends LogMean {
  mean(m) {
    return Math.exp(this.bounded(m));
  }

  slope(m) {
    return this.mean(m);
  }

  extraZeros(m) {
    if (!this.odds.length) return 0;
    return logistic(this.odds[0] + this.odds[1] * this.standardised(m));
  }

  // Distribution function of counts that are no extra zeros.
  positiveCdf(point) {
    const extra = this.extraZeros(point.mean), mean = this.mean(point.mean) / (1 - extra);
    const dispersion = this.dispersion + point.variance * (1 + this.dispersion);
    if (dispersion < LEAST_DISPERSION) return (y) => gammaShares(Math.floor(y) + 1, mean)[1];
    const size = 1 / clip(dispersion, LEAST_DISPERSION, MOST_DISPERSION);
    const p = size / (size + mean), rest = mean / (size + mean);
    return (y) => betaShare(p, rest, size, Math.floor(y) + 1);
  }

  sf(y, point) {
    if (y < 0) return 1;
    const extra = this.extraZeros(point.mean);
    return clip(1 - (extra + (1 - extra) * this.positiveCdf(point)(y)), 0, 1);
  }

  quantile(q, point) {
    const extra = this.extraZeros(point.mean);
    if (q <= extra) return 0;
    if (q >= 1) return Infinity;
    const cdf = this.positiveCdf(point), level = clip((q - extra) / (1 - extra), 0, 1);
    let high = 1;
    while (cdf(high) < level && high < 1e15) high *= 2;
    let low = -1;
    while (high - low > 1) {
      const middle = Math.floor((low + high) / 2);
      if (cdf(middle) < level) low = middle;
      else high = middle;
    }
    return high;
  }
}

class PointMass extends LogMean {
  constructor(spec) {
    super(spec);
    this.above = new Transformed(spec.above);
    this.shape = new ResidualShape(spec.shape);
  }

  boundedMean(eta) {
    const value = this.above.least + Math.exp(clip(eta, -LARGEST_LOG_MEAN, LARGEST_LOG_MEAN));
    return Math.min(value, this.above.most);
  }

  mean(m) {
    return this.boundedMean(this.bounded(m));
  }

  slope(m) {
    const mean = this.mean(m);
    return mean < this.above.most ? mean - this.above.least : 0;
  }

  probabilityAbove(m) {
    return logistic(this.odds[0] + this.odds[1] * this.standardised(m));
  }

  // Location and scale of transformed observations above the bound.
  location(m) {
    const mean = this.boundedMean(this.bounded(m) - Math.log(this.probabilityAbove(m)));
    const center = this.location_[0] + this.location_[1] * this.above.transform.forward(mean);
    return [center, Math.exp(this.log_scale[0] + this.log_scale[1] * this.standardised(m))];
  }

  score(y, m) {
    const [center, scale] = this.location(m);
    return clip(this.shape.scoreOf(clip((this.above.forward(y) - center) / scale, -1e6, 1e6)), -38, 38);
  }

  boundScore(m) {
    return Math.min(this.score(this.above.least, m), 8);
  }

  sf(y, point) {
    if (y < this.above.least) return 1;
    if (y >= this.above.most) return 0;
    const m = point.mean, lowest = this.boundScore(m);
    const below = (normalCdf(this.score(y, m)) - normalCdf(lowest)) / normalCdf(-lowest);
    return clip(this.probabilityAbove(m) * (1 - clip(below, 0, 1)), 0, 1);
  }

  quantile(q, point) {
    const m = point.mean, probability = this.probabilityAbove(m);
    if (q <= 1 - probability || !(probability > 0)) return this.above.least;
    const beyond = clip(Math.max(1 - q, 0) / probability, 0, 1);
    const score = -normalQuantile(beyond * normalCdf(-this.boundScore(m)));
    if (score === Infinity) return this.above.inverse(Infinity);
    const [center, scale] = this.location(m);
    return this.above.inverse(center + scale * this.shape.residualOf(clip(score, -38, 38)));
  }
}

function responseFamily(spec) {
  if (spec.kind === "transformed") return new Transformed(spec);
  if (spec.kind === "count") return new Counts(spec);
  const { location, ...others } = spec;
  return new PointMass({ ...others, location_: location });
}

// ------------------------------------------------------------ points and differences

// Sum of squares of errors by a family, less that of the last, as `family.variances`.
function familyVariance(errors) {
  let sum = 0;
  for (const error of errors) sum += error * error;
  return sum - 2 * errors[errors.length - 1] ** 2;
}

const totalVariance = (own, family) => Math.max(own + family, 0.1 * own);

// A point and its results on the scale of y.
class Point {
  constructor(observations, x) {
    this.link = observations.at(x);
    this.family = observations.family;
    this.sd = Math.sqrt(this.link.noise);
    const { mean } = this.link;
    this.estimate = this.family ? this.family.mean(mean, this.sd) : mean;
    this.slope = this.family ? this.family.slope(mean, this.sd) : 1;
    this.influence = this.family ? this.family.influence(mean, this.sd) : new Float64Array(1);
  }

  get standardError() {
    const own = this.slope ** 2 * this.link.variance;
    return Math.sqrt(this.family ? totalVariance(own, familyVariance(this.influence)) : own);
  }

  // Interval for the mean of y.
  meanInterval(level) {
    if (!this.family) return this.link.expectation(level);
    let squares = 0;
    for (const error of this.influence) squares += error * error;
    const steep = this.slope ** 2 > 1e-12 * squares;
    const added = steep ? familyVariance(this.influence) / this.slope ** 2 : 0;
    const ends = this.link.expectation(level, added).map((m) => this.family.mean(m, this.sd));
    return ends.sort((a, b) => a - b);
  }

  // Interval for a new observation.
  observationInterval(i) {
    return this.family ? this.family.interval(this.link, i) : this.link.observation(i);
  }

  // Probability that a new observation exceeds a value.
  exceedance(value) {
    return this.family ? this.family.sf(value, this.link) : this.link.sf(value);
  }
}

// The difference of the means at two points, with its standard error and interval.
function difference(model, point, reference, level) {
  const state = point.link.state.combined(point.slope, reference.link.state, -reference.slope);
  const { variance, weights } = model.moments(state);
  const errors = point.influence.map((value, i) => value - reference.influence[i]);
  const total = point.family ? totalVariance(variance, familyVariance(errors)) : variance;
  const { residual, members } = model.dof;
  const dof = satterthwaite(variance - weights, weights, residual, members);
  const estimate = point.estimate - reference.estimate;
  const standardError = Math.sqrt(total);
  return { estimate, standardError, interval: studentInterval(estimate, standardError, level, dof) };
}
