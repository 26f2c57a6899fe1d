"""ulmus beside scikit-learn's own tools, MAPIE, skpro and uncertainty-toolbox.

Each section stands alone; one whose package is missing says so and is passed over.
"""

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_friedman1
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer

from ulmus import ELMEnsembleRegressor, metrics

X, y = make_friedman1(1400, noise=1.0, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=400, random_state=0)
# Other packages fit it dozens of times, so it learns no map of its inputs here.
elm = ELMEnsembleRegressor(n_estimators=10, n_neurons=100, input_map=None, random_state=0)


def report(name, intervals, target=y_test):
    """Print how often 90 % intervals hold the test values, and how wide they are."""
    coverage = metrics.coverage(target, intervals)
    print(f"{name:<34}{coverage:7.1%} inside, mean width {metrics.mean_width(intervals):.2f}")


def own_intervals():
    """The estimator alone: three kinds of prediction interval, and its scores."""
    elm.fit(X_train, y_train)
    for method in ("auto", "jackknife+", "gaussian"):
        report(method, elm.predict_interval(X_test, 0.9, method=method))
    intervals = elm.predict_interval(X_test, 0.9)
    mean, std = elm.predict(X_test, return_std=True)
    print(f"interval score {metrics.interval_score(y_test, intervals, 0.9):.2f}")
    print(f"CRPS {metrics.crps_normal(y_test, mean, std):.3f}")


def pipeline():
    """Pipeline: ``predict`` passes ``return_std`` on; for intervals, transform first."""
    pipe = make_pipeline(PowerTransformer(), elm).fit(X_train, y_train)
    mean, std = pipe.predict(X_test, return_std=True)
    print(f"first prediction {mean[0]:.1f} with standard deviation {std[0]:.1f}")
    report("through a pipeline", pipe[-1].predict_interval(pipe[:-1].transform(X_test), 0.9))


def search():
    """Search: any score will do, here the CRPS, which judges error bars and mean together."""

    def crps(model, X, y):
        return -metrics.crps_normal(y, *model.predict(X, return_std=True))

    grid = {"n_neurons": [50, 100], "weight_scale": [0.3, 1.0]}
    found = GridSearchCV(elm, grid, scoring=crps, cv=3).fit(X_train, y_train)
    print(f"best {found.best_params_}, cross-validated CRPS {-found.best_score_:.3f}")
    r2 = cross_val_score(found.best_estimator_, X_train, y_train, cv=3)
    print(f"its R2 by cross-validation {r2.mean():.3f}")
    # The search itself only has predict(X); the rest is asked of best_estimator_.
    report("best of the search", found.best_estimator_.predict_interval(X_test, 0.9))


def transformed_target():
    """Transformed target: intervals of the inner model, carried back by a monotone function."""
    price_train, price_test = np.exp(y_train / 5), np.exp(y_test / 5)
    model = TransformedTargetRegressor(elm, func=np.log, inverse_func=np.exp)
    model.fit(X_train, price_train)
    # predict(X, return_std=True) fails: a standard deviation has no inverse transform.
    intervals = np.exp(model.regressor_.predict_interval(X_test, 0.9))
    report("exponential of intervals for logs", intervals, price_test)
    print(f"smallest lower end {intervals.min():.2f}: never negative")


def mapie():
    """MAPIE: conformal intervals whose width follows our standard deviation."""
    from mapie.regression import CrossConformalRegressor

    conformal = CrossConformalRegressor(elm, 0.9, conformity_score="std_normalized", cv=5)
    conformal.fit_conformalize(X_train, y_train)
    _, intervals = conformal.predict_interval(X_test)
    report("MAPIE, 5 refits", intervals[..., 0])
    report("ulmus, no refit", elm.fit(X_train, y_train).predict_interval(X_test, 0.9))


def skpro():
    """skpro: frames and distributions, with normal or with our own intervals."""
    import pandas as pd
    from skpro.metrics import CRPS
    from skpro.regression.adapters.sklearn import SklearnProbaReg

    from ulmus.skpro import ELMProbaRegressor

    frames = [pd.DataFrame(a).add_prefix("x") for a in (X_train, X_test)]
    targets = [pd.DataFrame({"y": a}) for a in (y_train, y_test)]
    for adapter in (SklearnProbaReg(elm), ELMProbaRegressor(elm)):
        adapter.fit(frames[0], targets[0])
        intervals = adapter.predict_interval(frames[1], coverage=0.9)
        report(type(adapter).__name__, intervals.to_numpy())
    print(f"skpro's CRPS {CRPS()(targets[1], adapter.predict_proba(frames[1])):.3f}")


def toolbox():
    """uncertainty-toolbox: its metrics read the mean and the standard deviation."""
    from uncertainty_toolbox import get_all_metrics

    mean, std = elm.fit(X_train, y_train).predict(X_test, return_std=True)
    found = get_all_metrics(mean, std, y_test, verbose=False)
    calibration = found["avg_calibration"]["ma_cal"]
    print(f"mean absolute calibration error {calibration:.3f}")
    print(f"CRPS {found['scoring_rule']['crps']:.3f}")


SECTIONS = (own_intervals, pipeline, search, transformed_target, mapie, skpro, toolbox)

if __name__ == "__main__":
    for section in SECTIONS:
        print(f"\n{section.__doc__}")
        try:
            section()
        except ImportError as error:
            print(f"Passed over: {error}.")
