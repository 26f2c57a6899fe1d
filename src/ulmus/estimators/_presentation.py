"""How an estimator presents itself: in words, in a notebook, and by a link to its page."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from ulmus.core.fit.fit import Fit

if TYPE_CHECKING:
    from ulmus.diagnostics import Summary

# The site that docs/ is built into; docs/conf.py has the same address.
DOCUMENTATION = "https://ulmus.readthedocs.io/en/latest"


class Presentation:
    """A summary, and scikit-learn's diagram with the summary of a fit below it."""

    fitted_: Any

    # scikit-learn links a diagram to the page that these make.
    _doc_link_module = "ulmus"
    _doc_link_template = DOCUMENTATION + "/reference/generated/ulmus.{estimator_name}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {"estimator_name": type(self).__name__}

    def summary(self, *, columns: Sequence[str] | None = None) -> Summary:
        """What was fitted, in words.

        Parameters
        ----------
        columns : sequence of str, optional
            For each feature, the column of an original table that it was made from; the relevance
            of the features of a column is added up, as if these were independent.

        Returns
        -------
        summary : Summary
            ``print`` it, or read its fields: rows and inputs, the target, members and ridge, the
            noise, the relevance of the inputs, left-out R2, RMSE and coverage, what the variance
            of a prediction is made of, warnings (what ``check`` finds that is not green) and what
            to do next. ``to_dict()`` is for JSON. Fits that keep no rows leave out what needs
            them, and say so.

        Notes
        -----
        It takes as long as ``check``: with at most 400 rows and a learned map about five times as
        long as the fit, if no error bar was asked for before; else some seconds at most. Left-out
        errors are exact and behind a map that has not seen the row where rows are so few; else
        those of ``loo_residuals_``.

        Examples
        --------
        >>> import numpy as np
        >>> from ulmus import ELMEnsembleRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.uniform(0, 6, size=(300, 1))
        >>> y = np.sin(X[:, 0]) + 0.3 * rng.standard_normal(300)
        >>> model = ELMEnsembleRegressor(20, 50, input_map=None, random_state=0).fit(X, y)
        >>> summary = model.summary()
        >>> print(str(summary).splitlines()[0])
        ELMEnsembleRegressor: 300 rows, 1 input.
        >>> bool(abs(summary.noise_sd - 0.3) < 0.03), summary.warnings
        (True, ())
        """
        # Its metrics load parts of scikit-learn that a fit does not need.
        from ulmus.diagnostics import fit_summary

        check_is_fitted(self)
        names = self._feature_names()
        if columns is not None and len(columns) != len(names):
            raise ValueError(
                f"columns has {len(columns)} entries for {len(names)} features; give the original "
                "column of each feature."
            )
        return fit_summary(self.fitted_, type(self).__name__, names, columns=columns)

    def _feature_names(self) -> list[str]:
        """Names of the features, or x0, x1 and so on."""
        names: Any = getattr(self, "feature_names_in_", None)
        if names is None:
            return [f"x{j}" for j in range(self.n_features_in_)]  # type: ignore[attr-defined]
        return list(map(str, names))

    # ------------------------------------------------------------ in a notebook

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + self._light_html()  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._light_html()
        return bundle

    def _light_html(self) -> str:
        """The summary of a fit without anything that has to be computed; empty without a fit."""
        try:
            from ulmus.diagnostics import fit_summary

            names, title = self._feature_names(), type(self).__name__
            return fit_summary(self.fitted_, title, names, brief=True)._repr_html_()
        except Exception:  # a notebook shows an estimator whatever state it is in
            return ""

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """scikit-learn's table of attributes, without computing one that is not known yet.

        Newer versions read all attributes when they show an estimator.
        """
        shown, fit = copy(self), vars(self).get("fitted_")
        if isinstance(fit, Fit):
            alarm = vars(fit).get("undersmoothing_gap", fit.kept_alarm)
            shown.fitted_ = replace(fit, kept_alarm=float("nan") if alarm is None else alarm)
        return super(Presentation, shown)._get_fitted_attr_html(doc_link)  # type: ignore[misc]
