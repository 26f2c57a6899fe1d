"""The pictures of docs/guide/report.md: screenshots of a report with few colours.

``python docs/pictures.py [FOLDER]``, by default docs/_static/pictures. It requires chromium with
its driver, selenium, Pillow and `ulmus[report]`.
"""

import io
import shutil
import sys
import tempfile
from pathlib import Path

from PIL import Image
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from sklearn.datasets import load_diabetes

from ulmus import ELMEnsembleRegressor
from ulmus.report import write_report

WIDTH, COLOURS = 900, 48
# Parts of the page by the name of their picture.
PARTS = {
    "verdict": "#verdict",
    "predictions": "figure:has(#figure-predictions)",
    "curves": "section[aria-labelledby=curves] .pair",
    "answers": "section[aria-labelledby=answers]",
    "calibration": "section[aria-labelledby=calibration] .pair",
    "checks": "#checks .findings",
    "relevance": "figure:has(#figure-relevance)",
    "variance": "figure:has(#figure-variance)",
}
UNFOLD = """for (const name of ["checks", "relevance", "variance"]) {
    document.getElementById(name).open = true;
}"""


def report(folder: Path) -> Path:
    """A report about a default fit of the diabetes data."""
    X, y = load_diabetes(return_X_y=True, as_frame=True, scaled=False)
    model = ELMEnsembleRegressor(random_state=0).fit(X, y)
    return write_report(model, X, y, folder / "report.html", target="progression")


def browser() -> webdriver.Chrome:
    """Chromium without a window."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    size = f"--window-size={WIDTH},1200"
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage", size):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def small(png: bytes) -> Image.Image:
    """The same picture with few colours."""
    picture = Image.open(io.BytesIO(png)).convert("RGB")
    return picture.quantize(COLOURS, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)


def main(target: Path) -> None:
    """Write a picture of each part."""
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, browser() as driver:
        driver.get(report(Path(folder)).as_uri())
        driver.execute_script(UNFOLD)
        for name, selector in PARTS.items():
            part = driver.find_element("css selector", selector)
            driver.execute_script("arguments[0].scrollIntoView({block: 'center'})", part)
            path = target / f"report_{name}.png"
            small(part.screenshot_as_png).save(path, optimize=True)
            print(f"wrote {path.name}, {path.stat().st_size // 1000} kB")


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "docs/_static/pictures"))
