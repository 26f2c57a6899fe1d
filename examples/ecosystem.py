"""ulmus with scikit-learn's model selection, MAPIE, skpro and uncertainty-toolbox.

Each section is independent; a section whose package is not installed is skipped.
"""

import numpy as np
from sklearn.compose import TransformedTargetRegressor
from sklearn.datasets import make_friedman1
from sklearn.model_selection import GridSearchCV, cross_val_score, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PowerTransformer

from ulmus import ELMEnsembleRegressor, inference, metrics

X, y = make_friedman1(1400, noise=1.0, random_state=0)
X_train, X_test, y_train, y_test = train_test_split(X, y, train_size=400, random_state=0)
# No input map: other packages refit the model dozens of times.
elm = ELMEnsembleRegressor(n_estimators=10, n_neurons=100, input_map=None, random_state=0)


def report(name, intervals, target=y_test):
    """Print coverage and mean width of 90 % intervals on the test rows."""
    coverage = metrics.coverage(target, intervals)
    print(f"{name:<34}coverage {coverage:.1%}, mean width {metrics.mean_width(intervals):.2f}")


def own_intervals():
    """Three prediction intervals of the estimator, and scoring rules."""
    elm.fit(X_train, y_train)
    for method in ("auto", "jackknife+", "gaussian"):
        report(method, elm.predict_interval(X_test, 0.9, method=method))
    intervals = elm.predict_interval(X_test, 0.9)
    mean, std = elm.predict(X_test, return_std=True)
    print(f"interval score {metrics.interval_score(y_test, intervals, 0.9):.2f}")
    print(f"CRPS {metrics.crps_normal(y_test, mean, std):.3f}")


def pipeline():
    """Pipeline: ``predict`` passes ``return_std`` on; ``ulmus.inference`` computes intervals."""
    pipe = make_pipeline(PowerTransformer(), elm).fit(X_train, y_train)
    mean, std = pipe.predict(X_test, return_std=True)
    print(f"first prediction {mean[0]:.1f} with standard deviation {std[0]:.1f}")
    report("pipeline", inference(pipe).predict_interval(X_test, 0.9))


def search():
    """Grid search by CRPS, a proper scoring rule for the predictive distribution."""

    def crps(model, X, y):
        return -metrics.crps_normal(y, *model.predict(X, return_std=True))

    grid = {"n_neurons": [50, 100], "weight_scale": [0.3, 1.0]}
    selection = GridSearchCV(elm, grid, scoring=crps, cv=3).fit(X_train, y_train)
    print(f"best {selection.best_params_}, cross-validated CRPS {-selection.best_score_:.3f}")
    r2 = cross_val_score(selection.best_estimator_, X_train, y_train, cv=3)
    print(f"cross-validated R2 {r2.mean():.3f}")
    # GridSearchCV delegates predict(X) only; intervals are methods of best_estimator_.
    report("best of the search", selection.best_estimator_.predict_interval(X_test, 0.9))


def transformed_target():
    """Transformed target: bounds on the log scale, transformed back by a monotone function."""
    price_train, price_test = np.exp(y_train / 5), np.exp(y_test / 5)
    model = TransformedTargetRegressor(elm, func=np.log, inverse_func=np.exp)
    model.fit(X_train, price_train)
    # predict(X, return_std=True) fails: a standard deviation has no inverse transform.
    intervals = np.exp(model.regressor_.predict_interval(X_test, 0.9))
    report("exponential of intervals for logs", intervals, price_test)
    print(f"smallest lower bound {intervals.min():.2f}: positive by construction")


def mapie():
    """MAPIE: conformal intervals scaled by the predictive standard deviation."""
    from mapie.regression import CrossConformalRegressor

    conformal = CrossConformalRegressor(elm, 0.9, conformity_score="std_normalized", cv=5)
    conformal.fit_conformalize(X_train, y_train)
    _, intervals = conformal.predict_interval(X_test)
    report("MAPIE, 5 refits", intervals[..., 0])
    report("ulmus, no refit", elm.fit(X_train, y_train).predict_interval(X_test, 0.9))


def skpro():
    """skpro: frames and distributions, with normal intervals or those of ulmus."""
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
    """uncertainty-toolbox: metrics of the mean and the standard deviation."""
    from uncertainty_toolbox import get_all_metrics

    mean, std = elm.fit(X_train, y_train).predict(X_test, return_std=True)
    results = get_all_metrics(mean, std, y_test, verbose=False)
    calibration = results["avg_calibration"]["ma_cal"]
    print(f"mean absolute calibration error {calibration:.3f}")
    print(f"CRPS {results['scoring_rule']['crps']:.3f}")


SECTIONS = (own_intervals, pipeline, search, transformed_target, mapie, skpro, toolbox)

if __name__ == "__main__":
    for section in SECTIONS:
        print(f"\n{section.__doc__}")
        try:
            section()
        except ImportError as error:
            print(f"Skipped: {error}.")
