"""Say what does not fit the screen on the pages of a built site: ``python docs/check_layout.py FOLDER``.

On a desktop and on a phone no page scrolls sideways, and no block of code or output is cut.
Requires selenium, chromium and its driver.
"""

import shutil
import sys
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

WIDTHS = (1280, 390)
HEIGHT = 900
# The page and its article, blocks of code and output, tables, formulas: what is wider than its place?
WIDER = """
const cut = [];
const places = ".bd-article-container, .bd-article pre, .bd-article div.math, .output_html";
for (const place of [document.scrollingElement, ...document.querySelectorAll(places)]) {
  if (place.clientWidth && place.scrollWidth > place.clientWidth) {
    const what = place.matches("html, .bd-article-container") ? "page" : place.className || place.tagName;
    const text = place.textContent.trim().split("\\n")[0].slice(0, 40);
    cut.push(`${what} is ${place.scrollWidth} of ${place.clientWidth} pixels wide: ${text}`);
  }
}
return cut;
"""


def browser() -> webdriver.Chrome:
    """Chromium without a window."""
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or shutil.which("google-chrome") or ""
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))


def cut_blocks(driver: webdriver.Chrome, pages: list[Path], width: int) -> list[str]:
    """What is wider than its place, page by page, on a screen of this width."""
    screen = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
    found = []
    for page in pages:
        driver.get(page.resolve().as_uri())
        found += [f"{page} at {width}: {text}" for text in driver.execute_script(WIDER)]
    return found


def main(site: Path) -> int:
    """Print what is cut; 1 if something is."""
    pages = [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]
    with browser() as driver:
        found = [text for width in WIDTHS for text in cut_blocks(driver, pages, width)]
    print("\n".join(found) or "Every page fits a desktop and a phone.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
