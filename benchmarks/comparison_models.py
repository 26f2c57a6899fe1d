"""The methods that comparison.py compares, each with its defaults on a table as it is.

A method is a function: from training rows and a seed it makes a function that predicts points.
What intervals need of the training rows belongs to the first of the two, unless the package itself
computes it later. Packages are imported by the methods that need them.
"""

import logging
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from io import StringIO
from typing import Any

import numpy as np
import pandas as pd
from mixed_data import Table, kinds
from mixed_models import (
    LEVEL,
    Forecast,
    Inputs,
    boosting_inputs,
    boosting_model,
    catboost_inputs,
    catboost_model,
    categories_as_texts,
    dates_as_numbers,
)
from sklearn.impute import SimpleImputer
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import OneHotEncoder
from uci_rivals import conformal_quantile, gaussian_process

from ulmus import ELMEnsembleRegressor
from ulmus.metrics import normal_intervals

Predict = Callable[[pd.DataFrame], Forecast]
Fit = Callable[[Table, int, str], Predict]
HELD_OUT = 0.2  # share of the training rows that calibrate split-conformal intervals


@dataclass(frozen=True)
class Method:
    """A fit, its package, its largest table, and what the page says about it."""

    fit: Fit
    description: str
    packages: tuple[str, ...] = ("ulmus",)
    most_rows: float = np.inf
    most_columns: float = np.inf
    on_device: bool = False

    @property
    def missing(self) -> list[str]:
        return [package for package in self.packages if find_spec(package) is None]

    def accepts(self, train: Table) -> bool:
        if len(train.y) > self.most_rows:
            return False
        return self.most_columns == np.inf or encoded(train.X)[1] <= self.most_columns


# --- ulmus ------------------------------------------------------------------------------------


def ensemble(train: Table, seed: int, device: str) -> Predict:
    model = ELMEnsembleRegressor(random_state=seed).fit(train.X, train.y)
    return lambda X: Forecast(model.predict(X), model.predict_interval(X, LEVEL))


# --- MAPIE ------------------------------------------------------------------------------------


def catboost(train: Table, seed: int, device: str) -> Predict:
    model, names = catboost_model(seed), kinds(train.X)["categories"]
    return cross_conformal(model, catboost_inputs(train.X), train, seed, cat_features=names)


def boosting(train: Table, seed: int, device: str) -> Predict:
    return cross_conformal(boosting_model(seed), boosting_inputs(train.X), train, seed)


def cross_conformal(
    model: Any, prepared: Inputs, train: Table, seed: int, **options: Any
) -> Predict:
    """MAPIE's CrossConformalRegressor, by default CV+ with five folds, and a model of all rows."""
    from mapie.regression import CrossConformalRegressor

    conformal = CrossConformalRegressor(model, LEVEL, random_state=seed)
    conformal.fit_conformalize(prepared(train.X), train.y, fit_params=options)

    def predict(X: pd.DataFrame) -> Forecast:
        mean, intervals = conformal.predict_interval(prepared(X))
        return Forecast(mean, intervals[:, :, 0])

    return predict


# --- Gaussian process ---------------------------------------------------------------------------


def process(train: Table, seed: int, device: str) -> Predict:
    columns, _ = encoded(train.X)
    fitted = gaussian_process(columns(train.X), train.y)

    def predict(X: pd.DataFrame) -> Forecast:
        found = fitted(columns(X))
        return Forecast(found.mean, normal_intervals(found.mean, found.sd, LEVEL))

    return predict


def completed(train: pd.DataFrame) -> Inputs:
    """Medians and an indicator for missing numbers, a text for missing categories, no dates."""
    names = kinds(train)["categories"]
    imputer = SimpleImputer(strategy="median", add_indicator=True, keep_empty_features=True)
    imputer.set_output(transform="pandas")

    def numbers(frame: pd.DataFrame) -> pd.DataFrame:
        return dates_as_numbers(frame.drop(columns=names)).astype(float)

    if len(names) < train.shape[1]:
        imputer.fit(numbers(train))

    def prepared(frame: pd.DataFrame) -> pd.DataFrame:
        texts = categories_as_texts(frame[names], names)
        if len(names) == frame.shape[1]:
            return texts
        return pd.concat([imputer.transform(numbers(frame)), texts], axis=1)

    return prepared


def encoded(train: pd.DataFrame) -> tuple[Callable[[pd.DataFrame], np.ndarray], int]:
    """The same with an indicator for each category, as an array, and how many columns it has."""
    prepared, names = completed(train), kinds(train)["categories"]
    encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)
    encoder.fit(prepared(train)[names])

    def columns(frame: pd.DataFrame) -> np.ndarray:
        complete = prepared(frame)
        numbers = complete.drop(columns=names).to_numpy(dtype=float)
        return np.hstack([numbers, encoder.transform(complete[names])]) if names else numbers

    return columns, columns(train[:1]).shape[1]


# --- pytabkit -----------------------------------------------------------------------------------


def split_conformal(name: str, train: Table, seed: int, device: str) -> Predict:
    """A model of pytabkit for the means, and one of 80 % of the rows for the intervals."""
    import pytabkit

    prepared, category = completed(train.X), kinds(train.X)["categories"]
    X = prepared(train.X)

    def fitted(rows: pd.DataFrame, y: np.ndarray) -> Any:
        model = getattr(pytabkit, name)(device=device, random_state=seed, n_threads=1)
        return quietly(model.fit, rows, y, cat_col_names=category)

    def means(model: Any, rows: pd.DataFrame) -> np.ndarray:
        return np.ravel(quietly(model.predict, rows)).astype(float)

    rows, held_out, y, y_held_out = train_test_split(
        X, train.y, test_size=HELD_OUT, random_state=seed
    )
    model, split = fitted(X, train.y), fitted(rows, y)
    half = conformal_quantile(np.abs(y_held_out - means(split, held_out)), LEVEL)

    def predict(points: pd.DataFrame) -> Forecast:
        points = prepared(points)
        ends = means(split, points)[:, None] + np.array([-half, half])
        return Forecast(means(model, points), ends)

    return predict


def quietly(function: Callable, *arguments: Any, **options: Any) -> Any:
    """The result of a function that prints its progress."""
    for name in ("pytorch_lightning", "lightning.pytorch"):
        logging.getLogger(name).setLevel(logging.ERROR)
    with warnings.catch_warnings(), redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        warnings.simplefilter("ignore")
        return function(*arguments, **options)


METHODS = {
    "ulmus": Method(ensemble, "ELMEnsembleRegressor(), predict_interval(X, 0.9)"),
    "CatBoost": Method(
        catboost,
        "CatBoostRegressor(); MAPIE's CrossConformalRegressor, by default CV+ with five folds",
        ("catboost", "mapie"),
    ),
    "HistGB": Method(
        boosting,
        'HistGradientBoostingRegressor(categorical_features="from_dtype"); MAPIE, the same',
        ("mapie",),
    ),
    "GP": Method(
        process,
        "GaussianProcessRegressor, constant times ARD RBF plus white kernel, one restart; "
        "at most 1500 rows and 40 columns after encoding",
        most_rows=1500,
        most_columns=40,
    ),
    "RealMLP-TD": Method(
        partial(split_conformal, "RealMLP_TD_Regressor"),
        "pytabkit's RealMLP_TD_Regressor(); split conformal with 20 % held out",
        ("pytabkit",),
        on_device=True,
    ),
    "TabM-D": Method(
        partial(split_conformal, "TabM_D_Regressor"),
        "pytabkit's TabM_D_Regressor(); the same split conformal",
        ("pytabkit",),
        on_device=True,
    ),
    "xRFM-D": Method(
        partial(split_conformal, "XRFM_D_Regressor"),
        "pytabkit's XRFM_D_Regressor(); the same split conformal",
        ("pytabkit", "xrfm"),
        on_device=True,
    ),
    "xRFM-HPO": Method(
        partial(split_conformal, "XRFM_HPO_Regressor"),
        "pytabkit's XRFM_HPO_Regressor(), random search over 50 configurations; the same",
        ("pytabkit", "xrfm"),
        on_device=True,
    ),
}
