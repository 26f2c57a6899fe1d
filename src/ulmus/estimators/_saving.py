"""The method ``save`` of the estimators."""

from __future__ import annotations

import os
from typing import Any

from ulmus.estimators._docstrings import shared_docs
from ulmus.estimators._parameters import checked_choice, checked_noise
from ulmus.estimators._target import target_spec
from ulmus.estimators._threads import n_threads
from ulmus.model_file import save


class Saving:
    """Writes a fitted estimator to a model file."""

    noise: Any
    dtype: Any
    n_jobs: Any

    @shared_docs
    def save(self, path: str | os.PathLike[str], *, rows: bool = True) -> None:
        """Save the fitted model in a file of arrays and JSON, without any code.

        Parameters
        ----------
        path : str or path-like
            The file, usually ``*.ulmus``. An existing one is replaced when all is written.
        rows : bool, default=True
            Whether the training rows are saved, where the fit keeps them: jackknife+ intervals,
            ``check()`` and attributes of length ``n_samples`` require them, and anyone with the
            file can read them. With False the file contains what ``compress()`` keeps; the model
            in memory stays as it is.

        See Also
        --------
        ulmus.load : Loads the model of a file.

        Notes
        -----
        A loaded model computes the same results, to the last bit on the same machine. A file with
        rows contains no large exact forms of the variances: what requires them computes them from
        the rows with its first call. With at most 400 rows and a learned map, the refits behind the
        error bars are saved, and computed now if no error bar was computed before: two to three
        times as long as the fit. :doc:`/guide/model_files` describes the content of a file.

        Examples
        --------
        {sine_model}
        >>> import tempfile, ulmus
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     model.save(f"{folder}/model.ulmus")
        ...     again = ulmus.load(f"{folder}/model.ulmus")
        >>> bool((again.predict_interval(X) == model.predict_interval(X)).all())
        True
        """
        save(self, path, rows=rows)

    def _require_saved_parameters(self) -> None:
        """Refuse parameters of a file that predictions depend on and that ``fit`` would refuse."""
        checked_choice("dtype", self.dtype, ("float64", "float32"))
        checked_noise(self.noise)
        target_spec(self)
        n_threads(self.n_jobs)
