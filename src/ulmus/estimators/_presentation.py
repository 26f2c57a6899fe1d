"""Presentation of an estimator: text summary, notebook display and link to its documentation."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from sklearn.utils.validation import check_is_fitted

from ulmus.core.fit.fit import Fit
from ulmus.estimators._docstrings import shared_docs
from ulmus.estimators._threads import threaded
from ulmus.tables.frames import default_feature_names

if TYPE_CHECKING:
    from ulmus.diagnostics import Summary

# The site that docs/ is built into; docs/conf.py has the same address.
DOCUMENTATION = "https://ulmus.readthedocs.io/en/latest"


class Presentation:
    """A summary of the fit, and scikit-learn's diagram followed by a brief summary."""

    fitted_: Any

    # Read by scikit-learn, which links its diagram to this page.
    _doc_link_module = "ulmus"
    _doc_link_template = DOCUMENTATION + "/reference/generated/ulmus.{estimator_name}.html"

    def _doc_link_url_param_generator(self) -> dict[str, str]:
        return {"estimator_name": type(self).__name__}

    @shared_docs
    @threaded
    def summary(self, *, columns: Sequence[str] | None = None) -> Summary:
        """Summary of the fit and its accuracy.

        Parameters
        ----------
        columns : sequence of str, optional
            For each feature, the column of an original table that it was encoded from. The
            relevances of the features of a column are added.

        Returns
        -------
        summary : Summary
            Text when printed. Its fields are rows and inputs, the target, members and ridge
            parameter, the noise, the relevance of the inputs, leave-one-out R2, RMSE and coverage,
            the components of the variance, warnings (diagnostics of ``check`` whose severity is
            not ``"ok"``) and suggestions. ``to_dict()`` is for JSON. Fields that require the
            training rows are omitted without them.

        Notes
        -----
        The leave-one-out errors are those of ``loo_residuals_``; with at most 400 rows and a
        learned map, the map is relearned without the fold of the row.

        Examples
        --------
        {sine_model}
        >>> summary = model.summary()
        >>> print(str(summary).splitlines()[0])
        ELMEnsembleRegressor: 100 rows, 1 input.
        >>> round(summary.noise_sd, 1), [finding.name for finding in summary.warnings]
        (0.3, ['members'])
        """
        # Imported here, because it loads parts of scikit-learn that a fit does not need.
        from ulmus.diagnostics import fit_summary

        check_is_fitted(self)
        names = self._input_names()
        columns = self._input_columns() if columns is None else columns
        if columns is not None and len(columns) != len(names):
            text = f"columns must name the original column of each of the {len(names)} features"
            raise ValueError(f"{text}, got {len(columns)} entries.")
        found = fit_summary(self.fitted_, type(self).__name__, names, columns=columns)
        schema = vars(self).get("columns_")
        return found if schema is None else replace(found, notes=(*schema.notes, *found.notes))

    def _input_names(self) -> list[str]:
        """Names of the inputs of the model, several of which may encode one column."""
        schema = vars(self).get("columns_")
        return self._feature_names() if schema is None else list(schema.features)

    def _input_columns(self) -> list[str] | None:
        """The column that each of these inputs encodes; None if they are the columns."""
        schema = vars(self).get("columns_")
        return None if schema is None else list(schema.origins)

    def _feature_names(self) -> list[str]:
        """Names of the columns that the model uses, x0, x1, ... by default."""
        schema = vars(self).get("columns_")
        if schema is not None:
            return list(schema.names)
        names: Any = getattr(self, "feature_names_in_", None)
        if names is None:
            return default_feature_names(self.n_features_in_)  # type: ignore[attr-defined]
        return list(map(str, names))

    # ------------------------------------------------------------ in a notebook

    def _repr_html_inner(self) -> str:
        return super()._repr_html_inner() + self._brief_summary_html()  # type: ignore[misc]

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in bundle:
            bundle["text/html"] += self._brief_summary_html()
        return bundle

    def _brief_summary_html(self) -> str:
        """The summary of a fit without its expensive parts; empty without a fit."""
        try:
            from ulmus.diagnostics import fit_summary

            names, columns = self._input_names(), self._input_columns()
            title = type(self).__name__
            brief = fit_summary(self.fitted_, title, names, columns=columns, brief=True)
            return brief._repr_html_()
        except Exception:  # a notebook displays an estimator in any state
            return ""

    def _get_fitted_attr_html(self, doc_link: str = "") -> Any:
        """scikit-learn's table of attributes, without computing the undersmoothing gap.

        Recent versions read all attributes to display an estimator.
        """
        shown, fit = copy(self), vars(self).get("fitted_")
        if isinstance(fit, Fit):
            # Without points there is no undersmoothing gap to compute.
            shown.fitted_ = replace(fit, gap_points=fit.gap_points[:0])
        return super(Presentation, shown)._get_fitted_attr_html(doc_link)  # type: ignore[misc]
