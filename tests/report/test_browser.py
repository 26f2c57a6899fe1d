"""The report in a real browser: figures and controls work on desktops, phones and paper."""

import base64
import re
import zlib

import numpy as np
import pandas as pd
import pytest
from browser import chromium, needs_browser, resize
from models import plain_ensemble
from sklearn.compose import make_column_transformer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from ulmus import ELMEnsembleRegressor
from ulmus.report import write_report

pytestmark = needs_browser
DESKTOP, PHONE = 1280, 390
TALLEST = 4000


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("report")


@pytest.fixture(scope="module")
def odd(folder):
    """A report with a category, names that are not names, and a very long one."""
    rng = np.random.default_rng(0)
    n = 150
    X = pd.DataFrame(
        {
            "t": rng.uniform(0, 9, n),
            "kind": rng.choice(["oak", "<b>elm</b>", "ash"], n),
            "<script>alert(1)</script>": rng.normal(size=n),
            "a_name_without_any_gap_" * 12: rng.normal(size=n),
            "$a_1$ & $b": rng.normal(size=n),
        }
    )
    y = np.sin(X.t) + (X.kind == "oak") + 0.3 * rng.standard_normal(n)
    encode = make_column_transformer((OneHotEncoder(), ["kind"]), remainder="passthrough")
    pipe = make_pipeline(encode, plain_ensemble(4, 30, random_state=0)).fit(X, y)
    return write_report(pipe, X, y, folder / "odd.html", target="yield & more")


@pytest.fixture(scope="module")
def mixed(folder):
    """A report about dates, categories and missing values, with warnings."""
    rng = np.random.default_rng(1)
    n = 240
    X = pd.DataFrame(
        {
            "day": pd.date_range("2004-01-01", periods=n, freq="15D"),
            "kind": rng.choice(["oak", "elm", "ash"], n),
            "depth": np.where(rng.random(n) < 0.2, np.nan, rng.uniform(0, 9, n)),
            "year": rng.integers(1990, 2020, n),
            "slope": rng.uniform(size=n),
            "width": rng.uniform(size=n),
        }
    )
    y = np.arange(n) / 60 + (X.kind == "oak") + X.slope + 0.3 * rng.standard_normal(n)
    model = ELMEnsembleRegressor(4, 30, random_state=0).fit(X, y)
    return write_report(model, X, y, folder / "mixed.html", target="growth")


@pytest.fixture(scope="module", params=["odd", "mixed"])
def path(request):
    return request.getfixturevalue(request.param)


@pytest.fixture(scope="module")
def started():
    with chromium() as driver:
        yield driver


@pytest.fixture
def browser(started, path):
    """The browser with a freshly opened report in a wide window and light colours."""
    opened(started, path)
    return started


def opened(driver, path, width=DESKTOP, scheme="light"):
    resize(driver, width)
    features = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
    driver.get_log("browser")
    driver.get(path.as_uri())


def run(driver, code):
    return driver.execute_script(f"return {code}")


UNFOLD = "document.querySelectorAll('details').forEach((one) => { one.open = true; })"


def test_no_errors_and_every_figure_is_drawn(browser):
    run(browser, UNFOLD)
    assert browser.get_log("browser") == []
    sizes = run(
        browser,
        """[...document.querySelectorAll('.plot')].map((plot) => {
            const svg = plot.querySelector('svg'), box = svg.getBoundingClientRect();
            return [plot.id, box.width, box.height, svg.querySelectorAll('path, use').length];
        })""",
    )
    assert len(sizes) >= 9
    for name, width, height, n_paths in sizes:
        assert width > 300, name
        assert height > 80, name
        assert n_paths > 5, name


def test_the_page_is_short_before_unfolding(browser):
    assert run(browser, "document.documentElement.scrollHeight") <= TALLEST
    assert run(browser, "document.documentElement.scrollWidth") <= DESKTOP
    assert run(browser, "document.querySelectorAll('details[open]').length") == 0


def test_texts_of_figures_stay_inside_and_are_readable(started, path):
    for width in (DESKTOP, PHONE):
        opened(started, path, width)
        run(started, UNFOLD)
        outside = run(
            started,
            """[...document.querySelectorAll('.plot')].flatMap((plot) => {
                const box = plot.querySelector('svg').getBoundingClientRect();
                return [...plot.querySelectorAll('text')].map((text) => {
                    const own = text.getBoundingClientRect();
                    const beyond = Math.max(own.right - box.right, box.left - own.left,
                        own.bottom - box.bottom, box.top - own.top);
                    const size = parseFloat(getComputedStyle(text).fontSize);
                    return [plot.id, text.textContent, beyond,
                        size * box.width / plot.querySelector('svg').viewBox.baseVal.width];
                });
            })""",
        )
        assert len(outside) > 50
        for name, text, beyond, size in outside:
            assert beyond < 2, (name, text)
            assert size > 5.5, (name, text)


def test_every_figure_has_an_alternative_text(browser):
    texts = run(
        browser,
        """[...document.querySelectorAll('.plot')].map((plot) =>
            [plot.getAttribute('role'), plot.getAttribute('aria-label')])""",
    )
    for role, text in texts:
        assert role == "img"
        assert len(text) > 40


def test_names_are_no_mark_up(started, odd):
    opened(started, odd)
    run(started, UNFOLD)
    shown = run(started, "document.getElementById('figure-relevance').textContent")
    assert "<script>alert(1)</script>" in shown
    assert "$a_1$ & $b" in shown
    assert run(started, "document.querySelectorAll('body b').length") == 0


def test_the_theme_can_be_toggled_by_keyboard_and_names_its_state(browser):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    look = """(() => {
        const text = document.querySelector('#figure-predictions svg text');
        return [document.getElementById('theme').textContent,
            document.documentElement.dataset.theme,
            getComputedStyle(document.body).backgroundColor, getComputedStyle(text).fill,
            getComputedStyle(document.body).color];
    })()"""
    light = run(browser, look)
    browser.find_element(By.ID, "theme").send_keys(Keys.ENTER)
    dark = run(browser, look)
    assert light[:3] == ["Colours: light", "light", "rgb(255, 255, 255)"]
    assert dark[:3] == ["Colours: dark", "dark", "rgb(20, 24, 29)"]
    assert light[3] == light[4]
    assert dark[3] == dark[4] != light[3]
    browser.find_element(By.ID, "theme").send_keys(Keys.SPACE)
    assert run(browser, look) == light


def test_a_dark_system_gets_a_dark_page(started, path):
    opened(started, path, scheme="dark")
    assert run(started, "document.getElementById('theme').textContent") == "Colours: dark"
    assert run(started, "getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"


def test_all_texts_stand_out_from_the_page(started, path):
    """Contrast of at least 4.5 (WCAG AA) in light and dark colours."""
    for scheme in ("light", "dark"):
        opened(started, path, scheme=scheme)
        names = ("ink", "muted", "accent", "warn", "bad")
        style = "getComputedStyle(document.documentElement)"
        colours = {
            name: run(started, f"{style}.getPropertyValue('--{name}').trim()")
            for name in (*names, "paper", "panel")
        }
        for name in names:
            for ground in ("paper", "panel"):
                assert contrast(colours[name], colours[ground]) > 4.5, (scheme, name, ground)


def contrast(one, other):
    def luminance(colour):
        parts = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
        return linear @ [0.2126, 0.7152, 0.0722]

    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)


def test_every_fold_opens_and_closes_by_keyboard(browser):
    from selenium.webdriver.common.by import By
    from selenium.webdriver.common.keys import Keys

    folds = browser.find_elements(By.CSS_SELECTOR, "section > details, details.fold")
    assert len(folds) >= 9
    for fold in folds:
        summary = fold.find_element(By.TAG_NAME, "summary")
        assert summary.text
        before = fold.size["height"]
        summary.send_keys(Keys.ENTER)
        assert fold.get_attribute("open") == "true"
        assert fold.size["height"] > before
        summary.send_keys(Keys.ENTER)
        assert fold.get_attribute("open") is None


def test_a_link_to_a_folded_part_opens_it(browser):
    browser.get(browser.current_url.partition("#")[0] + "#checks")
    assert run(browser, "document.getElementById('checks').open") is True


@pytest.mark.parametrize("unfolded", [False, True])
def test_a_phone_needs_no_sideways_scrolling(started, path, unfolded):
    opened(started, path, PHONE)
    if unfolded:
        run(started, UNFOLD)
    assert run(started, "document.documentElement.scrollWidth") <= PHONE
    wide = run(
        started,
        f"""[...document.querySelectorAll('.plot svg')].filter(
            (svg) => svg.getBoundingClientRect().right > {PHONE}).length""",
    )
    assert wide == 0
    assert started.get_log("browser") == []


def test_print_has_pages_of_text_in_light_colours(started, path):
    opened(started, path, scheme="dark")
    pdf = base64.b64decode(started.execute_cdp_cmd("Page.printToPDF", {})["data"])
    n_pages = len(re.findall(rb"/Type /Page\b(?!s)", pdf))
    assert 2 <= n_pages <= 6
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", pdf, re.DOTALL)
    drawn = b"".join(zlib.decompress(s) for s in streams if s[:1] == b"x")
    assert drawn.count(b" Tj") + drawn.count(b" TJ") > 100
    started.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    assert run(started, "getComputedStyle(document.body).color") == "rgb(28, 36, 48)"
    shown = "getComputedStyle(document.getElementById('theme')).display"
    assert run(started, shown) == "none"
    started.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_dates_and_years_are_shown_as_such(started, mixed):
    opened(started, mixed)
    run(started, UNFOLD)
    text = run(started, "document.body.innerText")
    assert "2004-01-01 to 20" in text
    assert "1990 to 2019" in text
    assert "1,990" not in text
    assert "kind: oak" in text
    assert "kind=oak" not in text
    dates = run(
        started,
        """[...document.querySelectorAll('.plot')].filter((plot) =>
            plot.getAttribute('aria-label').includes('growth on day')).map((plot) =>
            [...plot.querySelectorAll('text')].map((text) => text.textContent))""",
    )
    assert {"2006", "2008", "2010"} <= set(dates[0])


def test_without_scripts_the_page_is_complete(started, path):
    started.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        opened(started, path, scheme="dark")
        picture = started.get_screenshot_as_png()
    finally:
        started.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
    assert len(picture) > 20_000
    assert run(started, "document.getElementById('theme').hidden") is True
    assert run(started, "getComputedStyle(document.body).backgroundColor") == "rgb(20, 24, 29)"
