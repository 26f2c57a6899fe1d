"""The code under "Reproduce this model" runs as printed, and refits the model."""

import html
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from command_line import SMALL, done
from models import small_ensemble
from numpy.testing import assert_allclose
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

import ulmus
from ulmus.report import TableSource, report_html

pytestmark = pytest.mark.slow
SAVED = '\nimport ulmus\nulmus.inference(model).save("again.ulmus")\n'


def code_of(page):
    return html.unescape(re.search(r'<code id="code">(.*?)</code>', page, re.DOTALL)[1])


def digest_of(page):
    return re.search(r"<code>([0-9a-f]{64})</code>", page)[1]


def run(code, folder):
    environment = os.environ | {"PYTHONPATH": str(Path(ulmus.__file__).parents[1])}
    command = [sys.executable, "-c", code]
    subprocess.run(command, cwd=folder, env=environment, check=True, timeout=300)
    return (folder / "report.html").read_text(encoding="utf-8")


def mixed_table(n=120):
    """Categories, dates, numbers with leading zeros, and missing values, also of the target."""
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {
            "day": pd.date_range("2019-03-01", periods=n, freq="7D").strftime("%Y-%m-%d"),
            "kind": rng.choice(["oak", "elm", "ash"], n),
            "zip": rng.choice(["0123", "4567", "0890"], n),
            "depth": np.where(rng.random(n) < 0.1, np.nan, rng.uniform(0, 9, n)),
        }
    )
    y = (table.kind == "elm") + np.sin(np.arange(n) / 9) + 0.2 * rng.standard_normal(n)
    return table.assign(growth=np.where(np.arange(n) % 10 == 3, np.nan, y))


def plain_table(n=90):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.uniform(size=(n, 3)), columns=["a", "b", "c d"])
    return table.assign(y=np.sin(4 * table.a) + 0.1 * rng.standard_normal(n))


CSV = {
    "mixed": (mixed_table, "growth", ()),
    "mixed, incomplete rows dropped": (mixed_table, "growth", ("--missing", "drop")),
    "plain": (plain_table, "y", ()),
    "correlated": (mixed_table, "growth", ("--time", "day")),
    "correlated, time not an input": (mixed_table, "growth", ("--time", "day", "--drop", "day")),
    "weighted": (plain_table, "y", ("--sample-weight", "b")),
    "counts": (
        lambda: plain_table().assign(y=lambda t: np.round(t.y + 1.5)),
        "y",
        ("--target-kind", "count"),
    ),
}


@pytest.mark.parametrize(
    ("case", "separator"), [*((case, ",") for case in CSV), ("mixed", ";"), ("plain", ";")]
)
def test_code_of_the_command_line_refits_the_model(tmp_path, case, separator, monkeypatch):
    make, target, options = CSV[case]
    monkeypatch.chdir(tmp_path)
    make().to_csv("table.csv", index=False, sep=separator, decimal="," if separator == ";" else ".")
    start = ("fit", "table.csv", "-t", target, *SMALL, *options)
    done(*start, "-o", "model.ulmus", "--report", "first.html")
    first = Path("first.html").read_text(encoding="utf-8")
    again = run(code_of(first) + SAVED, tmp_path)
    assert digest_of(again) == digest_of(first)
    models = [ulmus.load(tmp_path / name) for name in ("model.ulmus", "again.ulmus")]
    rows = make().dropna()[list(models[0].columns_.names)]
    assert_allclose(*(model.predict(rows) for model in models), rtol=1e-8)


def test_code_of_a_pipeline_refits_it(tmp_path):
    table = mixed_table().dropna().sample(frac=1, random_state=0)
    X, y = table[["kind", "depth"]], table.growth
    encode = make_column_transformer((OneHotEncoder(), ["kind"]), remainder=StandardScaler())
    pipe = make_pipeline(encode, small_ensemble(4, 15, alpha=0.1, noise_variance=0.09)).fit(X, y)
    table.to_csv(tmp_path / "table.csv", index=False)
    first = report_html(pipe, X, y, target="growth")
    assert "# table.csv: the training rows" in code_of(first)
    again = run(code_of(first), tmp_path)
    assert digest_of(again) == digest_of(first)
    verdicts = [page.split('id="verdict"')[1].split("</section>")[0] for page in (first, again)]
    assert verdicts[0] == verdicts[1]


def test_code_of_a_report_about_new_rows(tmp_path):
    table, new = plain_table(), plain_table(40)
    columns = ["a", "b", "c d"]
    model = small_ensemble(4, 15, alpha=0.1).fit(table[columns].to_numpy(), table.y)
    new = new.assign(a=new.a * 0.9 + 0.05)
    new.rename(columns={"a": "x0", "b": "x1", "c d": "x2"}).to_csv(tmp_path / "new.csv")
    table.rename(columns={"a": "x0", "b": "x1", "c d": "x2"}).to_csv(tmp_path / "table.csv")
    first = report_html(model, new[columns].to_numpy(), new.y)
    assert digest_of(run(code_of(first), tmp_path)) == digest_of(first)


def test_sources_of_other_formats():
    assert TableSource("t.parquet", "read_parquet").reading == "pd.read_parquet('t.parquet')"
