"""Mutation tests of the numerical core: does the test suite notice a small change of a formula?

A mutant is the package with one operator, comparison, condition or constant of ``ulmus.core``
changed. The tests of the changed module are run on it, the fastest and most sensitive first. A
mutant is killed by the first test that fails, or by a timeout; one that survives is an equivalent
formula or a gap in the tests. Mutants are written to a temporary copy of ``src``.

    python benchmarks/mutants.py --sample 120 --seed 0
    python benchmarks/mutants.py --only ridge/residuals --only noise/constant --sample 1000
"""

from __future__ import annotations

import argparse
import ast
import importlib.util
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
CORE = Path("ulmus/core")
TIMEOUT_S = 120

# Test files, relative to ``tests`` and without ``.py``: those of all modules, and those that run
# before them for some modules.
EVERY = (
    "core/variance/test_quadratic_forms core/data/test_block_passes core/fit/test_degenerate_cases "
    "intervals/test_confidence estimators/test_partial_fit estimators/test_properties "
    "core/ridge/test_alpha core/arrays/test_numerics intervals/test_prediction "
    "estimators/test_fit_blocks estimators/test_warnings estimators/test_bad_input "
    "estimators/test_estimates"
)
UNDERSMOOTHING = (
    "core/fit/test_degenerate_cases intervals/test_confidence statistics/test_intervals"
)
FIRST = {
    "arrays/backend": "core/arrays/test_devices core/arrays/test_backends",
    "arrays/linalg": (
        "core/arrays/test_linalg core/data/test_block_passes core/arrays/test_numerics "
        "core/arrays/test_devices"
    ),
    "data/cv_blocks": "core/data/test_cv_blocks core/ridge/test_block_leave_out",
    "data/source": "estimators/test_partial_fit estimators/test_fit_blocks",
    "fit/undersmoothed_fit": UNDERSMOOTHING,
    "input_map/marginal_likelihood": "core/input_map/test_marginal_likelihood",
    "input_map/optimisation": "core/input_map/test_optimisation",
    "layer/hidden_layer": "core/layer/test_hidden_layer",
    "layer/inputs": "core/layer/test_inputs",
    "noise/constant": "core/fit/test_degenerate_cases core/ridge/test_alpha",
    "noise_model/model": (
        "core/noise_model/test_noise_model estimators/test_noise_auto intervals/test_prediction "
        "estimators/test_fit_blocks"
    ),
    "query/kriging": "core/query/test_kriging",
    "query/leave_out": "intervals/test_prediction estimators/test_noise_auto",
    "query/sequential_design": "core/query/test_sequential_design",
    "ridge/alpha": "core/ridge/test_alpha estimators/test_properties",
    "ridge/member_pairs": (
        "core/data/test_block_passes core/fit/test_degenerate_cases core/arrays/test_devices"
    ),
    "ridge/residuals": "core/ridge/test_block_leave_out",
    "ridge/smoother": (
        "core/data/test_block_passes core/arrays/test_numerics core/arrays/test_single_precision "
        "core/ridge/test_weak_coordinates"
    ),
    "variance/estimates": "core/fit/test_degenerate_cases estimators/test_estimates",
    "variance/undersmoothing": UNDERSMOOTHING,
}

# Sizes that change speed and memory, and results by round-off at most.
SPEED_ONLY = {
    *("BLOCK_ELEMENTS", "DEVICE_BLOCK_ELEMENTS", "POINT_ELEMENTS", "CHUNK_ELEMENTS"),
    *("CANDIDATE_ELEMENTS", "PORTION_ELEMENTS", "CARD_TRIANGLE", "CARD_SVD_SIZE"),
    *("SPAN_UNITS", "SPECTRAL_ROWS"),
}
# Array libraries and devices: functions and arguments that are not mutated, and names in conditions
# that choose between algorithms for the same numbers.
PLUMBING = {
    *("like", "to_numpy", "is_foreign", "is_on_host", "reference_array", "row_blocks"),
    *("_torch_array", "row_products", "double_precision", "_svd_by_gram", "_halved", "portions"),
    *("_lapack_ridge_triangles", "sample_rows"),
    *("is_torch_namespace", "is_cupy_namespace", "SPAN_UNITS", "ndarray"),
    *("axis", "keepdims", "dtype", "device", "lwork", "strict", "side", "lower"),
}

OPERATORS = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult}
OPERATORS |= {ast.BitOr: ast.BitAnd, ast.BitAnd: ast.BitOr}
COMPARISONS = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt}
COMPARISONS |= {ast.Eq: ast.NotEq, ast.NotEq: ast.Eq}
EXTREMES = {"min": "max", "minimum": "maximum", "argmin": "argmax"}
EXTREMES |= {b: a for a, b in EXTREMES.items()}


@dataclass(frozen=True)
class Mutant:
    """One change: bytes ``start`` to ``end`` of a module are replaced."""

    module: str
    line: int
    start: int
    end: int
    before: str
    after: str

    def __str__(self) -> str:
        return f"{CORE / self.module}.py:{self.line}  {self.before}  ->  {self.after}"


def visited(node: ast.AST) -> Iterator[ast.AST]:
    """A node and its descendants, without types, messages, decorators and plumbing."""
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.Import() | ast.ImportFrom() | ast.arg():
            return
        case ast.FunctionDef(name=name) | ast.keyword(arg=name) if name in PLUMBING:
            return
        case ast.Subscript(value=ast.Attribute(attr="shape")):
            return
        case ast.Assign([target]) if words(target) & SPEED_ONLY:
            return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "bases", "type_params"):
            continue
        if name == "body" and isinstance(node, ast.If) and "_namespace" in ast.dump(node.test):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST):
                yield from visited(child)


def words(node: ast.AST) -> set[str]:
    """Names and attributes below a node."""
    names = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    return names | {n.attr for n in ast.walk(node) if isinstance(n, ast.Attribute)}


def changes(node: ast.AST) -> Iterator[tuple[ast.AST, str]]:
    """Expressions to replace at a node, and the text that replaces each."""
    match node:
        case ast.BinOp(left, op, right) if type(op) in OPERATORS:
            yield node, ast.unparse(ast.BinOp(left, OPERATORS[type(op)](), right))
        case ast.BinOp(left, ast.Pow(), _):
            yield node, ast.unparse(left)
        case ast.AugAssign(target, op, value) if type(op) in OPERATORS:
            yield node, ast.unparse(ast.AugAssign(target, OPERATORS[type(op)](), value))
        case ast.Compare(left, [op], right) if type(op) in COMPARISONS:
            yield node, ast.unparse(ast.Compare(left, [COMPARISONS[type(op)]()], right))
        case ast.BoolOp(op, values) if not words(node) & PLUMBING:
            other = ast.Or() if isinstance(op, ast.And) else ast.And()
            yield node, ast.unparse(ast.BoolOp(other, values))
        case ast.UnaryOp(ast.Not() | ast.Invert(), operand) if not words(node) & PLUMBING:
            yield node, ast.unparse(operand)
        case ast.Call(ast.Name(name) | ast.Attribute(_, name)) if name in EXTREMES:
            yield node.func, ast.unparse(node.func).removesuffix(name) + EXTREMES[name]
        case ast.If(ast.Compare(_, [ast.Eq() | ast.NotEq()])) | ast.If(ast.UnaryOp(ast.Not())):
            pass  # negated already, as an expression
        case ast.If(test) | ast.IfExp(test) if not words(test) & PLUMBING:
            yield test, f"not ({ast.unparse(test)})"
        case ast.Constant(value) if type(value) in (int, float):
            yield node, repr(value + 1 if type(value) is int or value == 0 else 2 * value)


def module_constants(tree: ast.Module) -> Iterator[tuple[ast.AST, str]]:
    """Constants of a module, ten times larger and halved."""
    for node in tree.body:
        match node:
            case ast.Assign([ast.Name(name)], ast.Constant(value)) if name not in SPEED_ONLY:
                if type(value) in (int, float):
                    yield node.value, repr(10 * value)
                    yield node.value, repr(value // 2 if isinstance(value, int) else value / 2)


def mutants_of(path: Path, module: str) -> list[Mutant]:
    """All mutants of a module, in the order of its lines."""
    source = path.read_bytes()
    starts = [0]
    for line in source.splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    tree, mutants = ast.parse(source), []
    for node, after in [*module_constants(tree), *(c for n in visited(tree) for c in changes(n))]:
        start = starts[node.lineno - 1] + node.col_offset
        end = starts[node.end_lineno - 1] + node.end_col_offset
        before = source[start:end].decode()
        # -1 is the last axis or element, or an inferred length.
        if source[start - 1 : end] == b"-1":
            continue
        text = after if isinstance(node, ast.stmt) else f"({after})"
        mutants.append(Mutant(module, node.lineno, start, end, " ".join(before.split()), text))
    return sorted(set(mutants), key=lambda m: (m.start, m.end, m.after))


def sampled(mutants: list[Mutant], size: int, seed: int) -> list[Mutant]:
    """A random sample with something of every module, in the order of the files."""
    drawn = random.Random(seed).sample(mutants, len(mutants))
    one_each = list({mutant.module: mutant for mutant in reversed(drawn)}.values())
    rest = [mutant for mutant in drawn if mutant not in one_each]
    return sorted((one_each + rest)[:size], key=lambda m: (m.module, m.start))


def tests_of(module: str) -> list[str]:
    """Test files of a module, each once."""
    names = dict.fromkeys([*FIRST.get(module, "").split(), *EVERY.split()])
    return [str(ROOT / "tests" / f"{name}.py") for name in names]


def passes(copy: Path, tests: list[str]) -> bool:
    """Whether the tests pass with the package in a folder."""
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", *tests]
    environment = {**os.environ, "PYTHONPATH": str(copy)}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, timeout=TIMEOUT_S, **quiet)
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


def survives(mutant: Mutant, copy: Path) -> bool:
    """Write a mutant, test it, and put the module back.

    Two mutants may have the same age and size, so the bytecode of a module is never kept.
    """
    path = copy / CORE / f"{mutant.module}.py"
    source = path.read_bytes()
    changed = source[: mutant.start] + mutant.after.encode() + source[mutant.end :]
    compile(changed, path, "exec")
    try:
        path.write_bytes(changed)
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)
        return passes(copy, tests_of(mutant.module))
    finally:
        path.write_bytes(source)
        Path(importlib.util.cache_from_source(str(path))).unlink(missing_ok=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Mutation tests of the numerical core.")
    parser.add_argument("--sample", type=int, default=120, help="number of mutants")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--only", action="append", metavar="MODULE", help="such as noise/model")
    parser.add_argument("--list", action="store_true", help="list the mutants and stop")
    arguments = parser.parse_args()
    core = ROOT / "src" / CORE
    names = [str(path.relative_to(core).with_suffix("")) for path in sorted(core.rglob("*.py"))]
    modules = [name for name in names if not arguments.only or name in arguments.only]
    mutants = [mutant for name in modules for mutant in mutants_of(core / f"{name}.py", name)]
    chosen = sampled(mutants, arguments.sample, arguments.seed)
    print(f"{len(chosen)} of {len(mutants)} mutants", flush=True)
    if arguments.list:
        print(*chosen, sep="\n")
        return
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "src"
        shutil.copytree(ROOT / "src", copy)
        every = list(dict.fromkeys(test for name in modules for test in tests_of(name)))
        if not passes(copy, every):
            sys.exit("the tests fail without any change, or take too long")
        survivors, began = [], time.perf_counter()
        for mutant in chosen:
            start = time.perf_counter()
            alive = survives(mutant, copy)
            survivors += [mutant] * alive
            seconds = time.perf_counter() - start
            print("survived" if alive else "killed  ", f"{seconds:5.1f} s  {mutant}", flush=True)
    minutes, killed = (time.perf_counter() - began) / 60, len(chosen) - len(survivors)
    print("\nsurvivors:", *survivors, sep="\n  ")
    print(f"\n{killed} of {len(chosen)} killed ({killed / len(chosen):.0%}) in {minutes:.0f} min")


if __name__ == "__main__":
    main()
