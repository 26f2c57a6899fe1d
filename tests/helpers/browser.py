"""A headless Chromium for tests of pages."""

import shutil
import warnings
from contextlib import contextmanager

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
PATIENCE = 60
needs_browser = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver"
    ),
]


@contextmanager
def chromium():
    """A browser without a window, which finds its driver here and nowhere else."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        try:
            yield driver
        finally:
            driver.quit()


def resize(driver, width, height=900):
    """Show a page in a window of this width; narrow ones are phones."""
    screen = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


def opened(driver, url, drawn):
    """Open a page, and wait until a script returns true."""
    from selenium.webdriver.support.ui import WebDriverWait

    driver.get_log("browser")
    driver.get("about:blank")
    driver.get(url)
    WebDriverWait(driver, PATIENCE).until(lambda d: d.execute_script(drawn))


def errors(driver):
    """Messages of the console that are errors."""
    return [entry for entry in driver.get_log("browser") if entry["level"] == "SEVERE"]
