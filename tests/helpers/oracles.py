"""The textbook formulas, with loops and explicit inverses, independent of ulmus.

Arguments, the same everywhere (the member axis comes first in every result):

H : M hidden matrices, each (n, N);  h : M hidden matrices at p points, each (p, N)
y : (n,) targets;  alpha : ridge penalty >= 0;  intercept : add an unpenalised 1
w : (n,) inverse noise variances up to a constant, or None for ones; zero drops the row

"Weighted space" is where the noise is homoskedastic: all rows times sqrt(w). Variances are
quadratic forms there; predictions, residuals and leave-one-out residuals are on y's scale.
Equations and sections are those of Guignard, Amato & Kanevski (2021).
"""

import itertools

import numpy as np

# ---------------------------------------------------------------- the linear smoother


def root_weights(n, w=None):
    """sqrt(w_i), shape (n,)."""
    return np.ones(n) if w is None else np.sqrt(np.asarray(w, dtype=float))


def n_rows(y, w=None):
    """Number of rows with positive weight."""
    return np.count_nonzero(root_weights(len(y), w))


def design(H_m, intercept=False):
    """[1, H] or H."""
    return np.column_stack([np.ones(len(H_m)), H_m]) if intercept else np.asarray(H_m)


def least_squares_inverse(A, intercept=False):
    """Limit of (A'A + alpha D)^-1 A' for alpha -> 0, dropping s < sqrt(eps) s_max."""
    rcond = np.sqrt(np.finfo(float).eps)
    if not intercept:
        return np.linalg.pinv(A, rcond=rcond)
    # The limit has the smallest coefficients without counting the intercept, so a rank
    # deficient [1, H] needs H centred first: pinv([1, H]) would shrink the intercept too.
    ones, H_m = A[:, 0], A[:, 1:]
    mean = ones / (ones @ ones)
    inverse = np.linalg.pinv(H_m - np.outer(ones, mean @ H_m), rcond=rcond)
    return np.vstack([mean - mean @ H_m @ inverse, inverse])


def ridge_inverse(H_m, alpha, intercept=False, w=None):
    """(A'A + alpha D)^-1 A' with A = diag(sqrt w) [1, H], D = diag(0, 1, ..., 1)."""
    A = root_weights(len(H_m), w)[:, None] * design(H_m, intercept)
    if alpha == 0:
        return least_squares_inverse(A, intercept)
    D = np.diag([0.0] * intercept + [1.0] * np.shape(H_m)[1])
    # Ridge is least squares with the extra rows sqrt(alpha) D and targets 0. Inverting the
    # stacked matrix is the same algebra without squaring the condition number.
    return np.linalg.pinv(np.vstack([A, np.sqrt(alpha) * D]))[:, : len(A)]


def smoother_rows(H, h, alpha, intercept=False, w=None, weighted=False):
    """z_m(x): prediction = z @ y, or z @ (sqrt(w) y) if weighted; shape (M, p, n)."""
    root = np.ones(len(H[0])) if weighted else root_weights(len(H[0]), w)
    rows = []
    for H_m, h_m in zip(H, h, strict=True):
        inverse = ridge_inverse(H_m, alpha, intercept, w)
        rows.append(design(h_m, intercept) @ inverse * root)
    return np.stack(rows)


def expected_errors(H, h, alpha, intercept=False, w=None):
    """Variance of a Gaussian process whose mean the ridge is, over that of the noise, (M, p)."""
    out = []
    for H_m, h_m in zip(H, h, strict=True):
        A = root_weights(len(H_m), w)[:, None] * design(H_m, intercept)
        D = np.diag([0.0] * intercept + [1.0] * np.shape(H_m)[1])
        inverse = np.linalg.pinv(A.T @ A + alpha * D)
        out.append([a @ inverse @ a for a in design(h_m, intercept)])
    return np.array(out)


def hat_matrix(H, alpha, intercept=False, w=None):
    """P_m = A (A'A + alpha D)^-1 A' in the weighted space, shape (M, n, n)."""
    root = root_weights(len(H[0]), w)
    return root[:, None] * smoother_rows(H, H, alpha, intercept, w, weighted=True)


def coefficients(H, y, alpha, intercept=False, w=None):
    """beta_m = (A'A + alpha D)^-1 A' sqrt(w) y, the intercept first; (M, N [+ 1])."""
    target = root_weights(len(y), w) * y
    return np.stack([ridge_inverse(H_m, alpha, intercept, w) @ target for H_m in H])


def predictions(H, h, y, alpha, intercept=False, w=None):
    """f_m(x) = h_m(x)' beta_m, shape (M, p); the ensemble is the mean over members."""
    beta = coefficients(H, y, alpha, intercept, w)
    return np.stack([design(h[m], intercept) @ beta[m] for m in range(len(H))])


def leverage(H, alpha, intercept=False, w=None):
    """p_mi = (P_m)_ii, shape (M, n)."""
    return np.stack([np.diag(P_m) for P_m in hat_matrix(H, alpha, intercept, w)])


def residuals(H, y, alpha, intercept=False, w=None, weighted=False):
    """r_m = y - f_m, times sqrt(w) if weighted; shape (M, n)."""
    root = root_weights(len(y), w) if weighted else 1.0
    return root * (y - predictions(H, H, y, alpha, intercept, w))


def loo_residuals(H, y, alpha, intercept=False, w=None):
    """r_mi / (1 - p_mi), shape (M, n)."""
    return residuals(H, y, alpha, intercept, w) / (1 - leverage(H, alpha, intercept, w))


def predictions_without(i, H, h, y, alpha, intercept=False, w=None):
    """f_m(x) refitted without row i, hidden weights kept; shape (M, p)."""
    H_rest = [np.delete(H_m, i, axis=0) for H_m in H]
    w_rest = None if w is None else np.delete(w, i)
    return predictions(H_rest, h, np.delete(y, i), alpha, intercept, w_rest)


def loo_residuals_brute_force(H, y, alpha, intercept=False, w=None):
    """y_i - f_m^(-i)(x_i) by n refits, shape (M, n)."""
    out = np.empty((len(H), len(y)))
    for i in range(len(y)):
        h = [H_m[i : i + 1] for H_m in H]
        out[:, i] = y[i] - predictions_without(i, H, h, y, alpha, intercept, w)[:, 0]
    return out


# ---------------------------------------------------------------- noise


def member_dof(H, alpha, intercept=False, w=None):
    """gamma_m = 2 tr P_m - tr P_m^2, shape (M,)."""
    P = hat_matrix(H, alpha, intercept, w)
    return np.array([2 * np.trace(P_m) - np.trace(P_m @ P_m) for P_m in P])


def dof(H, alpha, intercept=False, w=None):
    """gamma = mean_m (2 tr P_m - tr P_m^2), section 3.2.2."""
    return np.mean(member_dof(H, alpha, intercept, w))


def noise_variance(H, y, alpha, intercept=False, w=None):
    """sigma2 = sum_m r_m'r_m / (M (n - gamma)), weighted space (eq. EstimNoiseReg)."""
    rss = np.sum(residuals(H, y, alpha, intercept, w, weighted=True) ** 2)
    return rss / (len(H) * (n_rows(y, w) - dof(H, alpha, intercept, w)))


def omega(kind, H, y, alpha, intercept=False, w=None):
    """Squared residuals r_mi^2 corrected by the variant `kind`, weighted space; (M, n)."""
    P = hat_matrix(H, alpha, intercept, w)
    r = residuals(H, y, alpha, intercept, w, weighted=True)
    eye = np.eye(len(y))
    if kind == "pooled":  # discounted as HC2, averaged over members, then squared
        squares = omega("HC2", H, y, alpha, intercept, w)
        return np.tile(np.mean(np.sign(r) * np.sqrt(squares), axis=0) ** 2, (len(H), 1))
    out = np.empty_like(r)
    for m, (P_m, r_m) in enumerate(zip(P, r, strict=True)):
        p = np.diag(P_m)
        divisor = {
            "HC0": np.ones(len(y)),
            "HC2": np.diag((eye - P_m) @ (eye - P_m).T),
            "HC3": (1 - p) ** 2,
        }[kind]
        out[m] = r_m**2 / divisor
    return out


def sigma_matrices(kind, H, y, alpha, intercept=False, w=None):
    """Sigma_m, M matrices n x n: sigma2 I, diag(omega_m), or eq. HCCME (HC3-exact)."""
    if kind == "homoskedastic":
        sigma2 = noise_variance(H, y, alpha, intercept, w)
        return [sigma2 * np.eye(len(y)) for _ in H]
    if kind != "HC3-exact":
        return [np.diag(o) for o in omega(kind, H, y, alpha, intercept, w)]
    n, root = n_rows(y, w), root_weights(len(y), w)
    out = []
    for r in root * loo_residuals(H, y, alpha, intercept, w):
        out.append((n - 1) / n * (np.diag(r**2) - np.outer(r, r) / n))
    return out


# ---------------------------------------------------------------- variance of the ensemble
# z is smoother_rows(..., weighted=True), S is sigma_matrices(...); shapes (p,).


def form(z_m, S, z_l):
    """z_m(x)' S z_l(x) at each point."""
    return np.array([a @ S @ b for a, b in zip(z_m, z_l, strict=True)])


def nho(z, sigma2):
    """sigma2 / M^2 sum_{m,l} z_m'z_l (eq. estim:muTmu)."""
    M = len(z)
    total = sum(np.sum(z[m] * z[k], axis=1) for m in range(M) for k in range(M))
    return sigma2 * total / M**2


def br(z, sigma2):
    """sigma2 / (M(M-1)) sum_{m != l} z_m'z_l (eq. homo_diagoff)."""
    M = len(z)
    pairs = [(m, k) for m in range(M) for k in range(M) if m != k]
    return sigma2 * sum(np.sum(z[m] * z[k], axis=1) for m, k in pairs) / (M * (M - 1))


def s1(z, S):
    """1/M sum_m z_m' Sigma_m z_m."""
    return sum(form(z_m, S_m, z_m) for z_m, S_m in zip(z, S, strict=True)) / len(z)


def nhe(z, S):
    """1/M^2 sum_{m,l} z_m' Sigma_m z_l."""
    M = len(z)
    return sum(form(z[m], S[m], z[k]) for m in range(M) for k in range(M)) / M**2


def s2(z, S):
    """1/(M(M-1)) sum_{m != l} z_m' Sigma_m z_l."""
    M = len(z)
    pairs = [(m, k) for m in range(M) for k in range(M) if m != k]
    return sum(form(z[m], S[m], z[k]) for m, k in pairs) / (M * (M - 1))


def s3(z, S):
    """1/(M(M-1)(M-2)) sum over distinct (m, l, k) of z_m' Sigma_k z_l."""
    total, M = 0.0, len(z)
    for m in range(M):
        for k in range(M):
            for j in range(M):
                if len({m, k, j}) == 3:
                    total = total + form(z[m], S[j], z[k])
    return total / (M * (M - 1) * (M - 2))


def spread(H, h, y, alpha, intercept=False, w=None):
    """1/(M-1) sum_m (f_m - fbar)^2 (eq. estimLSbiasvariation), shape (p,)."""
    f = predictions(H, h, y, alpha, intercept, w)
    return np.sum((f - np.mean(f, axis=0)) ** 2, axis=0) / (len(H) - 1)


def noise_part(name, H, h, y, alpha, intercept=False, w=None, hc="HC3"):
    """The estimate of mu' Sigma mu called "NHo", "BR", "S1", "NHe", "S2", "S3"; (p,)."""
    z = smoother_rows(H, h, alpha, intercept, w, weighted=True)
    if name in ("NHo", "BR"):
        sigma2 = noise_variance(H, y, alpha, intercept, w)
        return {"NHo": nho, "BR": br}[name](z, sigma2)
    S = sigma_matrices(hc, H, y, alpha, intercept, w)
    return {"S1": s1, "NHe": nhe, "S2": s2, "S3": s3}[name](z, S)


def variance(name, H, h, y, alpha, intercept=False, w=None, hc="HC3"):
    """mu' Sigma mu as estimated by `name`, plus spread / M; shape (p,)."""
    first = noise_part(name, H, h, y, alpha, intercept, w, hc)
    return first + spread(H, h, y, alpha, intercept, w) / len(H)


def covariance(name, H, h, y, alpha, intercept=False, w=None, hc="HC3"):
    """The same estimates for all pairs of points, negative eigenvalues included; (p, p)."""
    z = smoother_rows(H, h, alpha, intercept, w, weighted=True)
    kind = "homoskedastic" if name in ("NHo", "BR") else hc
    S = sigma_matrices(kind, H, y, alpha, intercept, w)
    counted = {  # which z_m' S_j z_k are averaged
        "NHo": lambda m, k, j: j == m,
        "NHe": lambda m, k, j: j == m,
        "BR": lambda m, k, j: j == m != k,
        "S2": lambda m, k, j: j == m != k,
        "S1": lambda m, k, j: j == m == k,
        "S3": lambda m, k, j: len({m, k, j}) == 3,
    }[name]
    triples = [t for t in itertools.product(range(len(H)), repeat=3) if counted(*t)]
    noise = np.mean([z[m] @ S[j] @ z[k].T for m, k, j in triples], axis=0)
    f = predictions(H, h, y, alpha, intercept, w)
    away = f - np.mean(f, axis=0)
    redrawing = sum(np.outer(a, a) for a in away) / (len(H) - 1) / len(H)
    return (noise + noise.T) / 2 + redrawing


def pair_forms(H, h, y, alpha, intercept=False, w=None, kind="homoskedastic"):
    """A = mean_m z_m'S_m z_m and U = mean_{m != l} z_m'S_m z_l, shapes (p,)."""
    z = smoother_rows(H, h, alpha, intercept, w, weighted=True)
    S = sigma_matrices(kind, H, y, alpha, intercept, w)
    return s1(z, S), s2(z, S)


def components(H, h, y, alpha, intercept=False, w=None, kind="homoskedastic"):
    """The terms of eq. varELME: A/M, (M-1)/M U, (spread - (A - U))/M; shape (3, p)."""
    A, U = pair_forms(H, h, y, alpha, intercept, w, kind)
    s, M = spread(H, h, y, alpha, intercept, w), len(H)
    return np.stack([A / M, (M - 1) / M * U, (s - (A - U)) / M])


def positive_part_variance(H, h, y, alpha, intercept=False, w=None, kind="homoskedastic"):
    """mu'S mu + max(0, spread - (A - U)) / M, the positive part of BR and S2; (p,)."""
    first, second, third = components(H, h, y, alpha, intercept, w, kind)
    return first + second + np.maximum(third, 0)


def variance_at(M, H, h, y, alpha, intercept=False, w=None, kind="homoskedastic"):
    """max(U, 0) + spread / M for another number of members M, shape (p,)."""
    _, U = pair_forms(H, h, y, alpha, intercept, w, kind)
    return np.maximum(U, 0) + spread(H, h, y, alpha, intercept, w) / M


def member_correlation(H, h, y, alpha, intercept=False, w=None, kind="homoskedastic"):
    """Correlation of two members U / (U + spread), section 2.5; shape (p,)."""
    _, U = pair_forms(H, h, y, alpha, intercept, w, kind)
    return U / (U + spread(H, h, y, alpha, intercept, w))


def member_correlation_bound(H, h, y, alpha, intercept=False, w=None):
    """b = U / A = mu'mu / (mu'mu + tr C), free of sigma2, section 2.5; shape (p,)."""
    A, U = pair_forms(H, h, y, alpha, intercept, w, "homoskedastic")
    return U / A


# ---------------------------------------------------------------- choice of alpha


def gcv_score(H, y, alpha, intercept=False, w=None):
    """mean_m n ||(I - P_m) sqrt(w) y||^2 / (n - tr P_m)^2 (Golub et al. 1979)."""
    n, scores = n_rows(y, w), []
    P = hat_matrix(H, alpha, intercept, w)
    for P_m, r_m in zip(P, residuals(H, y, alpha, intercept, w, True), strict=True):
        scores.append(n * np.sum(r_m**2) / (n - np.trace(P_m)) ** 2)
    return np.mean(scores)


def loo_score(H, y, alpha, intercept=False, w=None):
    """sum_i w_i (mean_m r_mi / (1 - p_mi))^2: the ensemble's leave-one-out error."""
    ensemble = np.mean(loo_residuals(H, y, alpha, intercept, w), axis=0)
    return np.sum((root_weights(len(y), w) * ensemble) ** 2)


# ---------------------------------------------------------------- prediction intervals
# Barber, Candes, Ramdas & Tibshirani (2021), rows with positive weight only.


def ranked(values, rank):
    """The rank-th smallest value, -inf below the first and inf above the last."""
    return np.concatenate([[-np.inf], np.sort(values), [np.inf]])[rank]


def upper_rank(miscoverage, n):
    """ceil((1 - miscoverage)(n + 1)); rounding first keeps 0.9 * 10 from being 10."""
    return int(np.ceil(np.round((1 - miscoverage) * (n + 1), 9)))


def jackknife_refits(H, h, y, alpha, intercept=False, w=None):
    """f_-i(x), shape (rows, p), and R_i = |y_i - f_-i(x_i)|, shape (rows,)."""
    f, R = [], []
    for i in np.flatnonzero(root_weights(len(y), w)):
        at = [np.vstack([h[m], H[m][i : i + 1]]) for m in range(len(H))]
        both = np.mean(predictions_without(i, H, at, y, alpha, intercept, w), axis=0)
        f.append(both[:-1])
        R.append(abs(y[i] - both[-1]))
    return np.array(f), np.array(R)


def jackknife_plus_bounds(H, h, y, alpha, miscoverage, intercept=False, w=None):
    """floor(a(n+1))-th smallest f_-i - R_i, ceil((1-a)(n+1))-th of f_-i + R_i; (p, 2)."""
    f, R = jackknife_refits(H, h, y, alpha, intercept, w)
    k = upper_rank(miscoverage, len(R))
    low = [ranked(column - R, len(R) + 1 - k) for column in f.T]
    high = [ranked(column + R, k) for column in f.T]
    return np.column_stack([low, high])


def plotting_quantile(values, q):
    """The value at place q(n+1), counted from one, on straight lines between sorted values."""
    values, place = sorted(values), q * (len(values) + 1)
    if place <= 1:
        return values[0]
    if place >= len(values):
        return values[-1]
    below = int(place)
    return values[below - 1] + (place - below) * (values[below] - values[below - 1])


# ---------------------------------------------------------------- scores


def pinball(y, q, tau):
    """Loss of the quantile q of level tau."""
    return tau * (y - q) if y >= q else (1 - tau) * (q - y)
