"""Fit and predict on a graphics card with torch tensors.

Prints the card's double-precision matrix-product rate next to every time. Needs a CUDA device;
run as ``python benchmarks/gpu.py`` (``--rows 1e6`` for a short look).
"""

from __future__ import annotations

import argparse
import time

import numpy as np
import torch
from plain import plain_ensemble

FEATURES = 5
SETTINGS = {"n_neurons": 100, "alpha": 1e-3, "variance": "S2", "random_state": 0}
# The estimate S2 alone, and with the second ensemble that models the noise variance.
NOISE = {"S2": "homoskedastic", "S2 and noise model": "heteroskedastic"}


def seconds(work):
    torch.cuda.synchronize()
    start = time.perf_counter()
    result = work()
    torch.cuda.synchronize()
    return time.perf_counter() - start, result


def dgemm_rate(size=8192):
    A = torch.randn(size, size, dtype=torch.float64, device="cuda")
    seconds(lambda: A @ A)
    return 2 * size**3 / min(seconds(lambda: A @ A)[0] for _ in range(3))


def table(n_rows, block_rows=5_000_000):
    """Blocks of Friedman's function with noise that depends on the inputs, on the card."""
    generator = torch.Generator(device="cuda").manual_seed(0)
    make = {"dtype": torch.float64, "device": "cuda", "generator": generator}
    blocks = []
    for start in range(0, n_rows, block_rows):
        rows = min(block_rows, n_rows - start)
        X = torch.rand(rows, FEATURES, **make)
        f = 10 * torch.sin(torch.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2
        f += 10 * X[:, 3] + 5 * X[:, 4]
        noise = 0.5 + 2 * torch.sin(torch.pi * X.max(dim=1).values) ** 2
        y = f + noise.sqrt() * torch.randn(rows, **make)
        blocks.append((X, y))
    return blocks


def products(n, M, N):
    """Floating point operations of the matrix products that no algorithm can do without."""
    hidden = 2 * n * FEATURES * M * N
    rotations = 2 * n * M * N**2
    within = n * M * N**2
    between = n * (M * N) ** 2
    return hidden + rotations + within + between


def fit_time(blocks, M, what, rate):
    model = plain_ensemble(M, noise=NOISE[what], **SETTINGS)
    took, model = seconds(lambda: model.fit_blocks(blocks))
    n = sum(len(y) for _, y in blocks)
    floor = products(n, M, SETTINGS["n_neurons"]) / rate
    print(
        f"fit n={n:.0e} M={M:2d}, {what}: {took:.2f} s (products alone {floor:.2f} s)", flush=True
    )
    return model


def wide_layers(rate, n=200_000, M=5):
    """Fits of large hidden layers, ridge parameter by leave-one-out, beside their products."""
    ((X, y),) = table(n)
    plain_ensemble(M, 200, random_state=0).fit(X[:20_000], y[:20_000])
    for N in (1000, 2000, 4000):
        took, _ = seconds(lambda N=N: plain_ensemble(M, N, random_state=0).fit(X, y))
        floor = products(n, M, N) / rate
        print(f"fit n={n:.0e} N={N} M={M}, BR: {took:.2f} s (products alone {floor:.2f} s)")
        torch.cuda.empty_cache()


def prediction_rate(model, blocks, n_points=4_000_000):
    X = blocks[0][0][:n_points]
    model.predict_var(X[:100_000], component="model")
    times = sorted(seconds(lambda: model.predict_var(X, component="model"))[0] for _ in range(7))
    slow, median, fast = (len(X) / times[i] / 1e6 for i in (-1, 3, 0))
    print(f"predict with variance: {median:.1f} million points a second", end=" ")
    print(f"(median of seven, {slow:.1f} to {fast:.1f})", flush=True)


def agreement(n=20_000, M=20):
    """Largest relative difference between the card and the processor on the same rows."""
    X, y = (a.cpu().numpy() for a in table(n)[0])
    points = X[:1000]
    settings = {"noise": "heteroskedastic", **SETTINGS}
    on_host = plain_ensemble(M, **settings).fit_blocks([(X, y)])
    on_card = plain_ensemble(M, **settings, device="cuda").fit_blocks([(X, y)])
    for component in ("model", "noise"):
        host = on_host.predict_var(points, component=component)
        card = on_card.predict_var(points, component=component)
        print(f"{component}: largest relative difference {np.max(np.abs(card / host - 1)):.1e}")
    gap = np.max(np.abs(on_card.predict(points) / on_host.predict(points) - 1))
    print(f"mean: largest relative difference {gap:.1e}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=float, default=1e8, help="most rows to fit")
    rows = parser.parse_args().rows
    print(torch.cuda.get_device_name(), "torch", torch.__version__)
    rate = dgemm_rate()
    print(f"double-precision matrix product: {rate / 1e12:.1f} TFLOP/s")
    agreement()
    wide_layers(rate)
    fit_time(table(100_000), 20, "S2", rate)
    for n, M in ((10**6, 20), (10**7, 20), (10**8, 10)):
        if n > rows:
            break
        blocks = table(n)
        for what in NOISE:
            model = fit_time(blocks, M, what, rate)
        if n == 10**7:
            prediction_rate(model, blocks)
        del model, blocks
        torch.cuda.empty_cache()


if __name__ == "__main__":
    main()
