"""Parametrisations that several test files use."""

import pytest
from models import ensemble_of_three, plain_member

alphas = pytest.mark.parametrize("alpha", [0.0, 0.3])
both_estimators = pytest.mark.parametrize("make", [plain_member, ensemble_of_three])
intercepts = pytest.mark.parametrize("intercept", [False, True])
members = pytest.mark.parametrize("M", [1, 4])
noises = pytest.mark.parametrize("noise", ["homoskedastic", "heteroskedastic"])
weightings = pytest.mark.parametrize("weighted", [False, True])
