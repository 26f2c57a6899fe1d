"""Say what is wider than the screen on a built site: ``python docs/check_layout.py FOLDER``.

On a desktop and on a phone no page scrolls sideways, and no block of code or output is cut.
Requires selenium, chromium and its driver; without chromium nothing is
checked, and a line says so.
"""

import shutil
import sys
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.service import Service

WIDTHS = (1280, 390)
HEIGHT = 900
# Sidebars that move when the width changes would be measured on their way.
ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--force-prefers-reduced-motion",
)
# Pages, blocks of code and output, formulas and data frames that are wider than their place.
WIDER = """
const cut = [];
const places = ".bd-article-container, .bd-article pre, .bd-article div.math, .output_html";
for (const place of [document.scrollingElement, ...document.querySelectorAll(places)]) {
  if (place.clientWidth && place.scrollWidth > place.clientWidth) {
    const whole = place.matches("html, .bd-article-container");
    const what = whole ? "page" : place.className || place.tagName;
    const text = place.textContent.trim().split("\\n")[0].slice(0, 40);
    cut.push(`${what} is ${place.scrollWidth} of ${place.clientWidth} pixels wide: ${text}`);
  }
}
return cut;
"""


CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")


def browser() -> webdriver.Chrome:
    """Chromium without a window."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM or ""
    for argument in ARGUMENTS:
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=Service(DRIVER))


def too_wide(driver: webdriver.Chrome, pages: list[Path]) -> list[str]:
    """What is wider than its place on some pages, on a desktop and on a phone."""
    found = []
    for page in pages:
        driver.get(page.resolve().as_uri())
        for width in WIDTHS:
            screen = {
                "width": width,
                "height": HEIGHT,
                "deviceScaleFactor": 1,
                "mobile": width < 500,
            }
            driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)
            found += [f"{page} at {width}: {text}" for text in driver.execute_script(WIDER)]
    return found


def pages_of(site: Path) -> list[Path]:
    """All pages of a built site."""
    return [path for path in sorted(site.rglob("*.html")) if "_static" not in path.parts]


def main(site: Path) -> int:
    """Print what is too wide; 1 if something is."""
    if CHROMIUM is None or DRIVER is None:
        print("Widths are not checked: chromium or its driver is not installed.")
        return 0
    with browser() as driver:
        found = too_wide(driver, pages_of(site))
    print("\n".join(found) or "Every page fits a desktop and a phone.")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
