// Special functions: normal and Student distributions, gamma and beta functions.

const LANCZOS = [
  0.99999999999980993, 676.5203681218851, -1259.1392167224028, 771.32342877765313,
  -176.61502916214059, 12.507343278686905, -0.13857109526572012, 9.9843695780195716e-6,
  1.5056327351493116e-7,
];

// Logarithm of the gamma function for x > 0 (Lanczos).
function logGamma(x) {
  if (x < 0.5) return Math.log(Math.PI / Math.sin(Math.PI * x)) - logGamma(1 - x);
  const y = x - 1, t = y + 7.5;
  let sum = LANCZOS[0];
  for (let i = 1; i < 9; i++) sum += LANCZOS[i] / (y + i);
  return 0.5 * Math.log(2 * Math.PI) + (y + 0.5) * Math.log(t) - t + Math.log(sum);
}

// Lower and upper regularised incomplete gamma functions P(a, x) and Q(a, x).
function gammaShares(a, x) {
  if (!(x > 0)) return [0, 1];
  const front = Math.exp(a * Math.log(x) - x - logGamma(a));
  if (x < a + 1) {
    let term = 1 / a, sum = term;
    for (let k = 1; k < 5000 && Math.abs(term) > 1e-17 * Math.abs(sum); k++) {
      term *= x / (a + k);
      sum += term;
    }
    return [front * sum, 1 - front * sum];
  }
  // Continued fraction of the upper part (modified Lentz).
  let b = x + 1 - a, c = 1e300, d = 1 / b, f = d;
  for (let k = 1; k < 5000; k++) {
    const an = -k * (k - a);
    b += 2;
    d = 1 / nonzero(an * d + b);
    c = nonzero(b + an / c);
    const change = c * d;
    f *= change;
    if (Math.abs(change - 1) < 1e-16) break;
  }
  return [1 - front * f, front * f];
}

function nonzero(x) {
  return Math.abs(x) < 1e-300 ? 1e-300 : x;
}

// Regularised incomplete beta function I_x(a, b), with 1 - x given to keep its digits.
function betaShare(x, rest, a, b) {
  if (x <= 0) return 0;
  if (rest <= 0) return 1;
  if (x > (a + 1) / (a + b + 2)) return 1 - betaShare(rest, x, b, a);
  const logFront =
    a * Math.log(x) + b * Math.log(rest) + logGamma(a + b) - logGamma(a) - logGamma(b);
  let c = 1, d = 1 / nonzero(1 - ((a + b) * x) / (a + 1)), f = d;
  for (let m = 1; m < 3000; m++) {
    const even = (m * (b - m) * x) / ((a + 2 * m - 1) * (a + 2 * m));
    d = 1 / nonzero(1 + even * d);
    c = nonzero(1 + even / c);
    f *= c * d;
    const odd = (-(a + m) * (a + b + m) * x) / ((a + 2 * m) * (a + 2 * m + 1));
    d = 1 / nonzero(1 + odd * d);
    c = nonzero(1 + odd / c);
    const change = c * d;
    f *= change;
    if (Math.abs(change - 1) < 1e-16) break;
  }
  return (Math.exp(logFront) * f) / a;
}

function erf(x) {
  const [lower] = gammaShares(0.5, x * x);
  return x < 0 ? -lower : lower;
}

// Standard normal distribution function.
function normalCdf(x) {
  const [lower, upper] = gammaShares(0.5, 0.5 * x * x);
  return x < 0 ? 0.5 * upper : 0.5 + 0.5 * lower;
}

// Standard normal quantile: a start by Hastings' formula, then Newton's and Halley's steps.
function normalQuantile(p) {
  if (p <= 0) return -Infinity;
  if (p >= 1) return Infinity;
  if (p > 0.5) return -normalQuantile(1 - p);
  const t = Math.sqrt(-2 * Math.log(p));
  let x = -(t - (2.515517 + t * (0.802853 + t * 0.010328))
    / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308))));
  for (let k = 0; k < 4; k++) {
    const e = (normalCdf(x) - p) * Math.sqrt(2 * Math.PI) * Math.exp(0.5 * x * x);
    x -= e / (1 + 0.5 * x * e);
  }
  return x;
}

const NORMAL_DOF = 1e5;

// Probability that Student's variable exceeds x.
function studentSf(x, dof) {
  if (dof > NORMAL_DOF) {
    const z = x * (1 - 1 / (4 * dof)) / Math.sqrt(1 + (x * x) / (2 * dof));
    return normalCdf(-z);
  }
  const share = dof / (dof + x * x);
  const tail = 0.5 * betaShare(share, (x * x) / (dof + x * x), 0.5 * dof, 0.5);
  return x > 0 ? tail : 1 - tail;
}

// The value that Student's variable exceeds with probability p < 1/2.
function studentIsf(p, dof) {
  const z = -normalQuantile(p);
  const z2 = z * z;
  let x = z * (1 + (z2 + 1) / (4 * dof) + ((5 * z2 + 16) * z2 + 3) / (96 * dof * dof));
  if (dof > NORMAL_DOF) return x;
  // Newton's method for the logarithm of the tail, which is concave.
  const constant = logGamma(0.5 * (dof + 1)) - logGamma(0.5 * dof) - 0.5 * Math.log(dof * Math.PI);
  for (let k = 0; k < 60; k++) {
    const tail = studentSf(x, dof);
    const density = Math.exp(constant - 0.5 * (dof + 1) * Math.log1p((x * x) / dof));
    const step = (Math.log(tail / p) * tail) / density;
    x += step;
    if (Math.abs(step) < 1e-13 * Math.abs(x)) break;
  }
  return x;
}
