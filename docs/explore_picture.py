"""Draw the picture of the interactive page; it needs chromium.

``python docs/explore_picture.py [FILE]``, by default docs/explore.png.
"""

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from sklearn.datasets import load_diabetes

from ulmus import ELMEnsembleRegressor
from ulmus.explore import write_explorer

SIZE = "1180,860"
VALUES = "bmi=31&bp=110&threshold=200&level=0.9"
FLAGS = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]

target = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parent / "explore.png").resolve()
browser = shutil.which("chromium") or shutil.which("google-chrome")
if browser is None:
    sys.exit("needs chromium")
X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
X = X.assign(sex=X.sex.map({1: "female", 2: "male"}))
model = ELMEnsembleRegressor(random_state=0).fit(X, y)
with tempfile.TemporaryDirectory() as folder:
    page = Path(folder) / "page.html"
    write_explorer(model, page, target="disease progression", title="Diabetes after one year")
    command = [browser, *FLAGS, f"--user-data-dir={folder}/profile", f"--window-size={SIZE}"]
    command += ["--virtual-time-budget=5000", f"--screenshot={target}", f"{page.as_uri()}#{VALUES}"]
    subprocess.run(command, check=True, capture_output=True)
print(f"wrote {target.name}")
