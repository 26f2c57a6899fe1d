"""What a fit computes about the choice of its input map, besides the map."""

from __future__ import annotations

import numpy as np

from ulmus.core.arrays.backend import to_numpy
from ulmus.core.data.source import RowBlocks
from ulmus.core.ensemble.ensemble import Ensemble
from ulmus.core.ensemble.map_uncertainty import MapUncertainty, map_uncertainty
from ulmus.core.fit.layer import MapSearch, MapSource
from ulmus.core.fit.refits import fold_importances
from ulmus.core.fit.spec import FitSpec, LayerSpec
from ulmus.core.input_map.response import map_response
from ulmus.core.noise_model.model import NoiseVarianceModel
from ulmus.progress import stage


@stage("Importances of the inputs in folds")
def importances_of_folds(
    data: RowBlocks, spec: FitSpec, learned_from: MapSource | None, search: MapSearch | None
) -> tuple[np.ndarray, ...]:
    """Importances for the maps of folds, where those of all rows were the best start."""
    if learned_from is None or not learned_from.learned.from_importances:
        return ()
    assert search is not None  # as there were importances
    assert search.importances is not None
    assert isinstance(spec.layer, LayerSpec)  # a map was learned
    return fold_importances(data, spec.layer, search.importances)


@stage("Uncertainty due to the input map")
def uncertainty_of_map(
    ensemble: Ensemble, learned_from: MapSource | None, model: NoiseVarianceModel | None
) -> MapUncertainty | None:
    """Uncertainty due to a learned map; None without one."""
    if learned_from is None:
        return None
    response = map_response(learned_from.networks, learned_from.learned)
    if response is None:
        return None
    sample = learned_from.sample
    sigma2 = ensemble.ordered(
        [to_numpy(part.noise_variance.sigma2) for part in ensemble.regressions]
    )
    noise = np.repeat(sigma2[:, None], sample.y.shape[1], axis=1)
    if model is not None:
        noise = np.where(model.varies[:, None], model.variance(sample.X), noise)
    return map_uncertainty(ensemble, response, sample, noise)
