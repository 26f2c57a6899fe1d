"""Published results on the nine data sets of uci.py, and what the ensembles are to reach.

The protocol, random splits with a tenth of the rows for the test, is that of Hernandez-Lobato and
Adams (2015). RMSE and mean log density are as printed in the papers: probabilistic backpropagation
(Hernandez-Lobato and Adams 2015), deep ensembles (Lakshminarayanan, Pritzel and Blundell 2017),
NGBoost (Duan et al. 2020); for MC dropout (Gal and Ghahramani 2016) they are those of the clean run
of 2018 in its authors' repository DropoutUncertaintyExps. They average all splits, which may be
others than ours.
"""

METHODS = ("PBP 2015", "MC dropout 2018", "deep ensembles 2017", "NGBoost 2020")

# Per set, in the order of METHODS.
PUBLISHED = {
    "rmse": {
        "boston": (3.01, 2.90, 3.28, 2.94),
        "concrete": (5.67, 4.82, 6.03, 5.06),
        "energy": (1.80, 0.54, 2.09, 0.46),
        "kin8nm": (0.10, 0.08, 0.09, 0.16),
        "naval": (0.01, 0.00, 0.00, 0.00),
        "power": (4.12, 4.01, 4.11, 3.79),
        "protein": (4.73, 4.27, 4.71, 4.33),
        "wine-red": (0.64, 0.62, 0.64, 0.63),
        "yacht": (1.02, 0.67, 1.58, 0.50),
    },
    "ll": {
        "boston": (-2.57, -2.40, -2.41, -2.43),
        "concrete": (-3.16, -2.93, -3.06, -3.04),
        "energy": (-2.04, -1.21, -1.38, -0.60),
        "kin8nm": (0.90, 1.14, 1.20, 0.49),
        "naval": (3.73, 4.45, 5.63, 5.34),
        "power": (-2.84, -2.80, -2.79, -2.79),
        "protein": (-2.97, -2.87, -2.83, -2.81),
        "wine-red": (-0.97, -0.93, -0.94, -0.91),
        "yacht": (-1.63, -1.25, -1.18, -0.20),
    },
}

# The least RMSE found in print, whatever its error bars.
BEST = {
    "boston": ("2.65", "concrete dropout"),
    "concrete": ("3.86", "TabPFN v2"),
    "energy": ("0.32", "XGBoost"),
    "kin8nm": ("0.0636", "deep GP"),
    "naval": ("1e-4", "TabPFN v2"),
    "power": ("3.00", "TabPFN v2"),
    "protein": ("3.36", "XGBoost"),
    "wine-red": ("0.564", "XGBoost"),
    "yacht": ("0.417", "TabPFN v2"),
}
DUPLICATES = (
    "wine-red: a quarter of the test rows are training rows too, which favours trees that "
    "remember them."
)

# RMSE at most, mean log density at least, and the coverage of 95 % intervals between two shares.
TARGETS = {
    "rmse": {
        "boston": 2.62,
        "concrete": 4.00,
        "energy": 0.32,
        "kin8nm": 0.0640,
        "naval": 2e-5,
        "power": 3.25,
        "protein": 3.70,
        "wine-red": 0.640,
        "yacht": 0.32,
    },
    "ll": {
        "boston": -2.42,
        "concrete": -2.78,
        "energy": -0.30,
        "kin8nm": 1.32,
        "power": -2.58,
        "protein": -2.68,
        "wine-red": -0.95,
        "yacht": -0.20,
    },
    "coverage": (0.92, 0.97),
}
