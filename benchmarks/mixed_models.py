"""The models that mixed_tables.py compares, each with its native treatment of tables."""

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from mixed_data import Table, kinds
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline

import ulmus
from ulmus import ELMEnsembleRegressor
from ulmus.tables import TableEncoder

Array = np.ndarray
LEVEL = 0.9
# HistGradientBoostingRegressor has at most 255 categories in a column.
MOST_CATEGORIES = 255


class Forecast(NamedTuple):
    """Means (p,) and, where a model has them, intervals (p, 2) of new observations."""

    mean: Array
    intervals: Array | None = None


Model = Callable[[Table, pd.DataFrame, int], Forecast]
# From columns as they are to those that a model accepts.
Inputs = Callable[[pd.DataFrame], pd.DataFrame]


def native(train: Table, X: pd.DataFrame, seed: int) -> Forecast:
    """ELMEnsembleRegressor with its defaults on the table as it is."""
    model = ELMEnsembleRegressor(random_state=seed).fit(train.X, train.y)
    return Forecast(model.predict(X), model.predict_interval(X, LEVEL))


def encoder(train: Table, X: pd.DataFrame, seed: int) -> Forecast:
    """A Pipeline of TableEncoder(missing="impute") and ELMEnsembleRegressor."""
    model = ELMEnsembleRegressor(random_state=seed)
    pipe = make_pipeline(TableEncoder(missing="impute"), model).fit(train.X, train.y)
    return Forecast(pipe.predict(X), ulmus.inference(pipe).predict_interval(X, LEVEL))


def boosting(train: Table, X: pd.DataFrame, seed: int) -> Forecast:
    """HistGradientBoostingRegressor(categorical_features="from_dtype"), missing values as they are.

    Texts are categories; of a column with more than 255, the 254 most frequent ones and a
    category for the others. Dates, which it does not accept, are replaced by numbers.
    """
    prepared = boosting_inputs(train.X)
    model = boosting_model(seed).fit(prepared(train.X), train.y)
    return Forecast(model.predict(prepared(X)))


def boosting_model(seed: int) -> HistGradientBoostingRegressor:
    return HistGradientBoostingRegressor(categorical_features="from_dtype", random_state=seed)


def boosting_inputs(train: pd.DataFrame) -> Inputs:
    columns = {name: categories(train[name]) for name in kinds(train)["categories"]}

    def prepared(frame: pd.DataFrame) -> pd.DataFrame:
        values = {name: categorical(frame[name], known) for name, known in columns.items()}
        return dates_as_numbers(frame.assign(**values))

    return prepared


def catboost(train: Table, X: pd.DataFrame, seed: int) -> Forecast:
    """CatBoostRegressor with its defaults and its own treatment of categories and missing numbers.

    A missing category is a category of its own; dates are replaced by numbers.
    """
    prepared, names = catboost_inputs(train.X), kinds(train.X)["categories"]
    model = catboost_model(seed).fit(prepared(train.X), train.y, cat_features=names)
    return Forecast(model.predict(prepared(X)))


def catboost_model(seed: int) -> Any:
    from catboost import CatBoostRegressor

    options = {"thread_count": 1, "verbose": False, "allow_writing_files": False}
    return CatBoostRegressor(random_seed=seed, **options)


def catboost_inputs(train: pd.DataFrame) -> Inputs:
    names = kinds(train)["categories"]
    return lambda frame: dates_as_numbers(categories_as_texts(frame, names))


def categories_as_texts(frame: pd.DataFrame, names: list[str]) -> pd.DataFrame:
    """Categories as texts, a missing one as the text "missing"."""
    texts = {name: frame[name].astype(object).fillna("missing").astype(str) for name in names}
    return frame.assign(**texts)


def categories(values: pd.Series) -> pd.Index:
    """Categories that boosting distinguishes."""
    counts = values.astype(object).value_counts()
    most = MOST_CATEGORIES - 1 if len(counts) > MOST_CATEGORIES else MOST_CATEGORIES
    return counts.index[:most]


def categorical(values: pd.Series, known: pd.Index) -> pd.Categorical:
    """Values as categories; those that are not known are one more if its number reaches the cap."""
    values = values.astype(object)
    if len(known) < MOST_CATEGORIES - 1:
        return pd.Categorical(values, categories=known)
    values = values.where(values.isin(known) | values.isna(), "(other)")
    return pd.Categorical(values, categories=[*known, "(other)"])


def dates_as_numbers(frame: pd.DataFrame) -> pd.DataFrame:
    """Dates as days since 1970, days of the year and of the week, and hours."""
    for name in kinds(frame)["dates"]:
        date = frame[name].dt
        parts = {
            "days": (frame[name] - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=1),
            "day of year": date.dayofyear,
            "day of week": date.dayofweek,
            "hour": date.hour,
        }
        frame = frame.drop(columns=name)
        frame = frame.assign(**{f"{name}, {part}": values for part, values in parts.items()})
    return frame


@dataclass(frozen=True)
class Entry:
    """A model, and the package that it requires."""

    run: Model
    package: str = "ulmus"

    @property
    def installed(self) -> bool:
        return find_spec(self.package) is not None


MODELS = {
    "ulmus": Entry(native),
    "encoder": Entry(encoder),
    "boosting": Entry(boosting),
    "catboost": Entry(catboost, "catboost"),
}


# --- scores -----------------------------------------------------------------------------------

# Rows that coverage is counted for.
GROUPS = ("all", "missing", "rare")


def scores(
    model: Model, train: Table, test: Table, groups: dict[str, Array], seed: int
) -> dict[str, Any]:
    """RMSE, processor seconds, and numbers of test rows and of covered ones by group.

    A model that fails has the message of its error instead. Warnings are suppressed.
    """
    start = time.process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            mean, intervals = model(train, test.X, seed)
    except Exception as error:  # whatever one model raises, the others have their turn
        return {"error": f"{type(error).__name__}: {error}"}
    found: dict[str, Any] = {
        "rmse": float(np.sqrt(np.mean((test.y - mean) ** 2))),
        "seconds": time.process_time() - start,
    }
    if intervals is None:
        return found
    covered = (intervals[:, 0] <= test.y) & (test.y <= intervals[:, 1])
    found["width"] = float(np.mean(intervals[:, 1] - intervals[:, 0]))
    for group in GROUPS:
        rows = groups.get(group, np.ones(len(covered), bool) if group == "all" else None)
        if rows is not None:
            found[group] = [int(np.sum(rows)), int(np.sum(covered[rows]))]
    return found
