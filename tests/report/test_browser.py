"""The report in a real browser: every figure draws, controls work, phones and print are served."""

import base64
import shutil
import warnings

import numpy as np
import pandas as pd
import pytest
from models import plain_ensemble
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ulmus.report import write_report

webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium")
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        CHROMIUM is None or DRIVER is None, reason="needs chromium and chromedriver"
    ),
]
PATIENCE = 60
PHONE = 375


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    """A report with a category, names that are not names, and a very long one."""
    rng = np.random.default_rng(0)
    n = 150
    X = pd.DataFrame(
        {
            "t": rng.uniform(0, 9, n),
            "kind": rng.choice(["oak", "<b>elm</b>", "ash"], n),
            "<script>alert(1)</script>": rng.normal(size=n),
            "a_name_without_any_gap_" * 12: rng.normal(size=n),
        }
    )
    y = np.sin(X.t) + (X.kind == "oak") + 0.3 * rng.standard_normal(n)
    encode = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    pipe = make_pipeline(encode, plain_ensemble(4, 30, random_state=0)).fit(X, y)
    folder = tmp_path_factory.mktemp("report")
    return write_report(pipe, X, y, folder / "report.html", target="yield & more")


@pytest.fixture(scope="module")
def started():
    """A browser without a window, which finds its driver here and nowhere else."""
    from selenium.webdriver.chrome.service import Service

    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        driver = webdriver.Chrome(options=options, service=Service(DRIVER))
        yield driver
        driver.quit()


@pytest.fixture
def browser(started, path):
    """The browser with a freshly drawn report of a wide window in light colours."""
    resize(started, 1200)
    started.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    opened(started, path)
    return started


def opened(driver, path):
    from selenium.webdriver.support.ui import WebDriverWait

    driver.get_log("browser")
    driver.get(path.as_uri())
    drawn = "return document.documentElement.dataset.drawn"
    WebDriverWait(driver, PATIENCE).until(lambda d: d.execute_script(drawn) == "yes")


def resize(driver, width):
    screen = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": width < 500}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", screen)


def number_of(driver, selector):
    return driver.execute_script(f"return document.querySelectorAll({selector!r}).length")


def test_no_errors_and_every_figure_is_drawn(browser):
    assert browser.get_log("browser") == []
    n_figures = number_of(browser, "[data-figure]")
    assert n_figures == 10
    drawn = """return [...document.querySelectorAll('[data-figure]')].filter(
        (place) => place.matches('.js-plotly-plot') && place.querySelector('.main-svg .trace')
            && place.getBoundingClientRect().height > 100).length"""
    assert browser.execute_script(drawn) == n_figures
    assert number_of(browser, "#without-figures") == 0


def test_every_figure_has_an_alternative_text(browser):
    texts = """return [...document.querySelectorAll('[data-figure]')].map(
        (place) => [place.getAttribute('role'), place.getAttribute('aria-label')])"""
    for role, text in browser.execute_script(texts):
        assert role == "img"
        assert len(text) > 40


def test_names_are_no_mark_up(browser):
    read = "return document.querySelector('[data-figure=relevance]').textContent"
    assert "<script>alert(1)</script>" in browser.execute_script(read)
    assert number_of(browser, "body b") == 0


def test_another_input_can_be_chosen_by_keyboard(browser):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    look = """const place = document.querySelector('[data-figure=partial-dependence]');
        const shown = document.querySelectorAll('[data-of=partial-dependence]:not([hidden])');
        return [place.getAttribute('aria-label'), place.querySelector('.xtitle').textContent,
                shown.length, shown[0].dataset.number]"""
    before = browser.execute_script(look)
    browser.find_element(By.ID, "choose-partial-dependence").send_keys(Keys.ARROW_DOWN)
    after = browser.execute_script(look)
    assert (before[2:], after[2:]) == ([1, "0"], [1, "1"])
    assert before[0] != after[0]
    assert before[1] != after[1]


def test_the_theme_can_be_toggled_by_keyboard(browser):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    look = """const button = document.getElementById('theme');
        const paper = document.querySelector('.main-svg').style.background;
        return [button.getAttribute('aria-pressed'), document.documentElement.dataset.theme,
                getComputedStyle(document.body).backgroundColor, paper]"""
    light = browser.execute_script(look)
    browser.find_element(By.ID, "theme").send_keys(Keys.ENTER)
    dark = browser.execute_script(look)
    assert light[:2] == ["false", "light"]
    assert dark[:2] == ["true", "dark"]
    assert light[2] == light[3] != dark[2] == dark[3]
    browser.find_element(By.ID, "theme").send_keys(Keys.SPACE)
    assert browser.execute_script(look) == light


def test_a_dark_system_gets_a_dark_page(browser, path):
    dark = {"features": [{"name": "prefers-color-scheme", "value": "dark"}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", dark)
    opened(browser, path)
    assert browser.execute_script("return document.documentElement.dataset.theme") == "dark"
    pressed = "return document.getElementById('theme').getAttribute('aria-pressed')"
    assert browser.execute_script(pressed) == "true"


def test_a_phone_needs_no_sideways_scrolling(browser, path):
    resize(browser, PHONE)
    opened(browser, path)
    assert browser.execute_script("return document.documentElement.scrollWidth") <= PHONE
    wide = """return [...document.querySelectorAll('[data-figure]')].filter(
        (place) => place.querySelector('.main-svg').getBoundingClientRect().right > 375).length"""
    assert browser.execute_script(wide) == 0
    assert browser.get_log("browser") == []


def test_figures_follow_the_window(browser):
    from selenium.webdriver.support.ui import WebDriverWait

    resize(browser, 600)
    width = "return document.querySelector('[data-figure=target] .main-svg').clientWidth"
    WebDriverWait(browser, PATIENCE).until(lambda d: d.execute_script(width) < 600)


def test_print_has_pages_and_the_page_comes_back(browser):
    pdf = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert pdf.startswith(b"%PDF")
    assert pdf.count(b"/Type /Page\n") + pdf.count(b"/Type /Page ") > 1
    width = "return document.querySelector('[data-figure=target] .main-svg').clientWidth"
    assert browser.execute_script(width) > 700


def test_print_is_light_and_narrow(browser):
    look = """document.getElementById('theme').click();
        dispatchEvent(new Event('beforeprint'));
        const svg = document.querySelector('[data-figure=target] .main-svg');
        const seen = [document.documentElement.dataset.theme, svg.clientWidth];
        dispatchEvent(new Event('afterprint'));
        return [...seen, document.documentElement.dataset.theme]"""
    assert browser.execute_script(look) == ["light", 660, "dark"]


def test_a_browser_without_decompression_still_shows_text(browser, path):
    added = browser.execute_cdp_cmd(
        "Page.addScriptToEvaluateOnNewDocument", {"source": "delete window.DecompressionStream"}
    )
    browser.get(path.as_uri())
    browser.execute_cdp_cmd("Page.removeScriptToEvaluateOnNewDocument", added)
    note = "return document.getElementById('without-figures').hidden"
    assert browser.execute_script(note) is False
    assert "Accuracy of the model" in browser.execute_script("return document.body.innerText")
