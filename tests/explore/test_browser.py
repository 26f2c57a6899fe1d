"""The page in a real browser: its numbers are those of Python, and every control works."""

import json

import numpy as np
import pandas as pd
import pytest
from browser import chromium, errors, needs_browser, opened, resize
from models import mapped_ensemble, plain_ensemble
from numpy.testing import assert_allclose

from ulmus import ELMRegressor
from ulmus.explore import explorer_html, write_explorer
from ulmus.noise import AR1

# Points outside the range, few rows and weights of new rows are part of the tables here.
pytestmark = [
    *needs_browser,
    pytest.mark.slow,
    pytest.mark.filterwarnings("ignore::ulmus.exceptions.UlmusWarning"),
]
LEVELS = [0.5, 0.8, 0.9, 0.95, 0.99]
DRAWN = "return document.querySelectorAll('.ux-nearest tbody tr, .ux-curve path').length > 1"
NUMBERS = """
const explorer = document.getElementById("ulmus-explorer").explorer, all = JSON.parse(arguments[0]);
const { levels } = explorer.observations, out = [];
const number = (value) => (Number.isFinite(value) ? value : String(value));
for (const values of all.values) {
  const point = explorer.point(values), state = explorer.point(all.values[0]);
  out.push([
    point.estimate, point.standardError, Math.sqrt(point.link.total),
    levels.map((level, i) => point.observationInterval(i).map(number)),
    levels.map((level) => point.meanInterval(level)),
    all.thresholds.map((value) => point.exceedance(value)),
    [point.link.isOutside],
  ]);
}
return JSON.stringify(out);
"""


@pytest.fixture(scope="module")
def browser():
    with chromium() as driver:
        resize(driver, 1280)
        yield driver


def page_numbers(browser, path, values, thresholds):
    """Results of the page at values of its controls."""
    opened(browser, path.as_uri(), DRAWN)
    sent = json.dumps({"values": np.asarray(values, float).tolist(), "thresholds": thresholds})
    found = json.loads(browser.execute_script(NUMBERS, sent))
    assert errors(browser) == []
    parts = [np.array(part, dtype=float) for part in zip(*found, strict=True)]
    estimate, se, sd, observation, mean, exceedance, _ = parts
    return estimate, se, sd, np.swapaxes(observation, 1, 2), np.swapaxes(mean, 1, 2), exceedance


def compare(browser, path, model, X, values, thresholds, *, se=0.01, bounds=0.05):
    """Estimates within 1e-6 of their size, standard errors and bounds within a tolerance."""
    write_explorer(model, path)
    found = page_numbers(browser, path, values, thresholds)
    mean, variance = model.predict(X), model.predict_var(X, component="model")
    assert_allclose(found[0], mean, rtol=1e-6, atol=1e-6 * np.ptp(mean))
    assert_allclose(found[1], np.sqrt(variance), rtol=se)
    observation = model.predict_interval(X, LEVELS)
    confidence = model.predict_interval(X, LEVELS, kind="confidence", target="expectation")
    width = np.mean(observation[:, 1] - observation[:, 0], axis=0)
    assert_allclose(found[3] / width, observation / width, atol=bounds)
    width = np.mean(confidence[:, 1] - confidence[:, 0], axis=0)
    assert_allclose(found[4] / width, confidence / width, atol=se)
    assert_allclose(found[5], model.exceedance(X, thresholds), atol=max(1e-3, se / 2))


def plain_table(n=200, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1, 1, (n, 3))
    f = np.sin(3 * X[:, 0]) + X[:, 1] * X[:, 2]
    return X, f, rng


MODELS = {
    "default": (mapped_ensemble, 60, {}, {}),
    "many rows": (mapped_ensemble, 1200, {}, {"se": 0.003, "bounds": 0.003}),
    "single": (lambda M, N, **p: ELMRegressor(N, random_state=0, **p), 200, {}, {}),
    "no map": (plain_ensemble, 200, {"random_state": 0}, {}),
    "S1": (mapped_ensemble, 200, {"noise": "heteroskedastic", "variance": "S1"}, {}),
    "S3": (mapped_ensemble, 200, {"noise": "heteroskedastic", "variance": "S3"}, {}),
    "full map": (mapped_ensemble, 450, {"input_map": "full"}, {}),
    "no intercept": (mapped_ensemble, 200, {"fit_intercept": False}, {}),
    "rbf": (mapped_ensemble, 200, {"activation": "rbf"}, {}),
    "erf": (mapped_ensemble, 200, {"activation": "erf"}, {}),
    "cos": (mapped_ensemble, 200, {"activation": "cos"}, {}),
    "relu": (mapped_ensemble, 200, {"activation": "relu"}, {}),
    "fixed alpha": (mapped_ensemble, 200, {"alpha": 0.01}, {}),
    "almost no penalty": (mapped_ensemble, 300, {"alpha": 1e-8}, {"se": 0.002}),
}


@pytest.mark.parametrize("name", MODELS)
def test_numbers_are_those_of_the_model(browser, tmp_path, name):
    make, n, parameters, tolerance = MODELS[name]
    X, f, rng = plain_table(n)
    y = 100 + 20 * (f + 0.2 * rng.standard_normal(n))
    model = make(6, 60, **parameters).fit(X, y)
    new = np.random.default_rng(1).uniform(-1.1, 1.1, (200, 3))
    compare(browser, tmp_path / "p.html", model, new, new, [90.0, 120.0], **tolerance)


def targets(f, rng):
    n = len(f)
    positive = np.exp(f + 0.3 * rng.standard_normal(n))
    dry = rng.random(n) < 0.4
    return {
        "log": (positive, {"target_transform": "log"}),
        "sqrt": (positive, {"target_transform": "sqrt"}),
        "yeo-johnson": (positive - 1, {"target_transform": "yeo-johnson"}),
        "logit": (positive / (1 + positive), {"target_transform": "logit", "target_range": (0, 1)}),
        "bounded": (np.maximum(f, 0), {"target_transform": "sqrt", "target_range": (0, 2)}),
        "count": (rng.poisson(np.exp(1 + f)).astype(float), {"target_kind": "count"}),
        "rain": (np.where(dry, 0, positive), {"target_range": (0, None)}),
    }


@pytest.mark.parametrize(
    "name", ["log", "sqrt", "yeo-johnson", "logit", "bounded", "count", "rain"]
)
def test_numbers_on_the_scale_of_y(browser, tmp_path, name):
    X, f, rng = plain_table(300)
    y, parameters = targets(f, rng)[name]
    model = mapped_ensemble(4, 60, **parameters).fit(X, y)
    new = np.random.default_rng(1).uniform(-1, 1, (200, 3))
    thresholds = [0.0, float(np.quantile(y, 0.6)), float(y.max())]
    compare(browser, tmp_path / "p.html", model, new, new, thresholds)


def mixed_table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    day = pd.Timestamp("2020-01-01") + pd.to_timedelta(2 * np.arange(n), unit="D")
    kind = rng.choice(["elm", "oak", "ash"], n)
    frame = pd.DataFrame(
        {
            "day": day,
            "kind": np.where(rng.random(n) < 0.1, None, kind),
            "size": pd.Categorical(rng.choice(["s", "m", "l"], n), ["s", "m", "l"], ordered=True),
            "wet": rng.random(n) < 0.4,
            "t": np.where(rng.random(n) < 0.1, np.nan, rng.normal(10, 4, n)),
            "wind": rng.integers(0, 8, n),
        }
    )
    season = np.sin(2 * np.pi * day.dayofyear / 365.25)
    y = season + (kind == "oak") + 0.1 * frame.t.fillna(10) - 0.3 * frame.wet
    return frame, np.asarray(y + 0.2 * rng.standard_normal(n))


def test_controls_encode_columns_as_the_model_does(browser, tmp_path):
    frame, y = mixed_table()
    model = mapped_ensemble(4, 60).fit(frame, y)
    new = frame.dropna(subset=["t"]).iloc[:200]
    kinds, sizes = ["ash", "elm", "oak"], ["s", "m", "l"]
    values = np.column_stack(
        [
            (new.day - pd.Timestamp("1970-01-01")) / pd.Timedelta("1D"),
            [kinds.index(one) if one in kinds else 3 for one in new.kind],
            [sizes.index(one) for one in new["size"]],
            new.wet,
            new.t,
            new.wind,
        ]
    ).astype(float)
    compare(browser, tmp_path / "p.html", model, new, values, [float(np.median(y))])


def test_categories_of_many_levels(browser, tmp_path):
    rng = np.random.default_rng(0)
    town = rng.integers(0, 60, 500)
    frame = pd.DataFrame({"town": [f"t{i}" for i in town], "x": rng.normal(size=500)})
    y = rng.normal(size=60)[town] + frame.x + 0.3 * rng.standard_normal(500)
    model = mapped_ensemble(4, 60).fit(frame, y)
    labels = list(model.columns_.column("town").categories)
    new = pd.DataFrame({"town": rng.choice(labels, 50), "x": rng.normal(size=50)})
    values = np.column_stack([[labels.index(one) for one in new.town], new.x])
    compare(browser, tmp_path / "p.html", model, new, values, [0.0])
    tiny = mapped_ensemble(4, 60).fit(frame, 1e-9 * y)  # means of the target are inputs
    write_explorer(tiny, tmp_path / "p.html")
    estimate, *_ = page_numbers(browser, tmp_path / "p.html", values, [0.0])
    assert_allclose(estimate, tiny.predict(new), rtol=1e-6, atol=1e-6 * np.ptp(estimate))


def test_dates_of_single_precision(browser, tmp_path):
    rng = np.random.default_rng(0)
    day = rng.uniform(0, 10, 300)  # ten days: single precision rounds days since 1970 to minutes
    frame = pd.DataFrame({"t": pd.Timestamp("2024-03-01") + pd.to_timedelta(day, "D").floor("s")})
    y = np.sin(5 * day) + 0.1 * rng.normal(size=300)
    model = mapped_ensemble(4, 40, dtype="float32").fit(frame, y)
    new = frame.iloc[:60]
    values = (new - pd.Timestamp("1970-01-01")) / pd.Timedelta("1D")
    write_explorer(model, tmp_path / "p.html")
    estimate, se, *_ = page_numbers(browser, tmp_path / "p.html", values, [0.0])
    assert_allclose(estimate, model.predict(new), atol=1e-5)
    assert_allclose(se, np.sqrt(model.predict_var(new, component="model")), rtol=0.01)


def test_correlated_errors_weights_and_fits_without_rows(browser, tmp_path):
    X, f, rng = plain_table(300)
    y = f + 0.3 * rng.standard_normal(300)
    new = np.random.default_rng(1).uniform(-1, 1, (50, 3))
    weighted = mapped_ensemble(4, 60).fit(X, y, sample_weight=rng.uniform(0.5, 2, 300))
    compare(browser, tmp_path / "p.html", weighted, new, new, [0.0])
    correlated = mapped_ensemble(4, 40, noise=AR1()).fit(X, y)
    compare(browser, tmp_path / "p.html", correlated, new, new, [0.0])
    streamed = plain_ensemble(4, 40, random_state=0).fit_blocks(
        [(X[:150], y[:150]), (X[150:], y[150:])]
    )
    compare(browser, tmp_path / "p.html", streamed, new, new, [0.0])


def test_differences_are_those_of_functional(browser, tmp_path):
    X, f, rng = plain_table(300)
    for y, parameters in (
        (f + 0.2 * rng.standard_normal(300), {}),
        (np.exp(f + 0.4 * rng.standard_normal(300) ** 3), {"target_transform": "log"}),
    ):
        model = mapped_ensemble(4, 60, **parameters).fit(X, y)
        write_explorer(model, tmp_path / "p.html")
        new = np.random.default_rng(1).uniform(-1, 1, (30, 3))
        opened(browser, (tmp_path / "p.html").as_uri(), DRAWN)
        script = """
        const explorer = document.getElementById("ulmus-explorer").explorer;
        const points = arguments[0].map((values) => explorer.point(values));
        return points.slice(1).map((point) => explorer.difference(point, points[0], 0.9));"""
        found = browser.execute_script(script, new.tolist())
        A = np.column_stack([-np.ones(29), np.eye(29)])
        frame = model.functional(A, new, confidence_level=0.9)
        estimate = np.array([one["estimate"] for one in found])
        assert_allclose(estimate, frame.estimate, rtol=1e-6, atol=1e-6 * np.std(y))
        assert_allclose([one["standardError"] for one in found], frame.std_error, rtol=0.01)
        bounds = frame[["conf_low", "conf_high"]].to_numpy()
        error = np.abs(np.array([one["interval"] for one in found]) - bounds)
        assert np.all(error < 0.03 * frame.std_error.to_numpy()[:, None])


# ------------------------------------------------------------ the user interface


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    frame, y = mixed_table()
    model = mapped_ensemble(4, 60).fit(frame.rename(columns={"t": "<b>t</b> & °C"}), y)
    path = tmp_path_factory.mktemp("explore") / "page.html"
    return write_explorer(model, path, target="growth <i>", title="Growth & more")


@pytest.fixture
def shown(browser, page):
    resize(browser, 1280)
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    opened(browser, page.as_uri(), DRAWN)
    yield browser
    assert errors(browser) == []


def find(driver, selector):
    from selenium.webdriver.common.by import By

    return driver.find_element(By.CSS_SELECTOR, selector)


def wait(driver, script):
    from selenium.webdriver.support.ui import WebDriverWait

    return WebDriverWait(driver, 10).until(lambda d: d.execute_script(script))


def test_the_page_is_small_and_names_are_no_mark_up(shown, page):
    assert page.stat().st_size < 3e6
    assert (
        shown.execute_script("return document.querySelectorAll('b, main i:not([class])').length")
        == 0
    )
    assert "<b>t</b> & °C" in find(shown, ".ux-controls").text
    assert find(shown, ".ux-target").text == "growth <i>"
    assert shown.title == "Growth & more"


def test_a_menu_changes_prediction_curve_and_differences(shown):
    before = find(shown, ".ux-estimate").text, find(shown, ".ux-curve").get_attribute("innerHTML")
    menu = find(shown, "select[aria-label=kind]")
    chosen = "oak" if shown.execute_script("return arguments[0].value", menu) != "2" else "elm"
    choose = """const [menu, text] = arguments;
    menu.value = [...menu.options].find((o) => o.text === text).value;
    menu.dispatchEvent(new Event('change'));"""
    shown.execute_script(choose, menu, chosen)
    wait(shown, "return document.querySelectorAll('.ux-differences tbody tr').length === 1")
    after = find(shown, ".ux-estimate").text, find(shown, ".ux-curve").get_attribute("innerHTML")
    assert before[0] != after[0]
    assert before[1] != after[1]
    row = find(shown, ".ux-differences tbody tr").text
    assert chosen in row
    assert " to " in row
    find(shown, ".ux-pin").click()
    wait(shown, "return document.querySelector('.ux-differences').hidden")
    find(shown, ".ux-reset").click()
    wait(shown, f"return document.querySelector('.ux-estimate').textContent === {before[0]!r}")


def test_sliders_obey_the_keyboard(shown):
    from selenium.webdriver.common.keys import Keys

    slider = find(shown, "input[type=range][aria-label=wind]")
    start = float(slider.get_attribute("value"))
    shown.execute_script("arguments[0].focus()", slider)
    key, step = (Keys.ARROW_LEFT, -1) if start >= 7 else (Keys.ARROW_RIGHT, 1)
    slider.send_keys(key)
    assert float(slider.get_attribute("value")) == start + step
    assert slider.get_attribute("aria-valuetext") == f"{start + step:g}"


def test_extrapolation_is_named(shown):
    status = find(shown, ".ux-status")
    assert status.text.startswith("Inside")
    typed = find(shown, "input[aria-label='<b>t</b> & °C, value']")
    shown.execute_script(
        "arguments[0].value = 60; arguments[0].dispatchEvent(new Event('change'))", typed
    )
    wait(shown, "return document.querySelector('.ux-status').textContent.startsWith('Extrap')")
    assert "<b>t</b> & °C" in status.text


def test_thresholds_levels_and_the_curve(shown):
    threshold = find(shown, ".ux-threshold")
    threshold.send_keys("1.5")
    wait(shown, "return !document.querySelector('.ux-exceedance-row').hidden")
    assert "%" in find(shown, ".ux-exceedance").text
    before = find(shown, ".ux-observation").text
    level = "const s = document.querySelector('.ux-level'); s.value = '0'; s.onchange();"
    shown.execute_script(level)
    wait(shown, f"return document.querySelector('.ux-observation').textContent !== {before!r}")
    assert find(shown, ".ux-level-text").text == "50 %"
    for name in ("day", "kind", "wet", "wind"):
        choose = """const s = document.querySelector('.ux-shown');
        s.value = [...s.options].find((o) => o.text === arguments[0]).value; s.onchange();"""
        shown.execute_script(choose, name)
        wait(
            shown,
            "return document.querySelector('.ux-curve').getAttribute('aria-label')"
            f".includes('by {name},')",
        )
    assert number_of(shown, ".ux-curve path") > 1


def number_of(driver, selector):
    return driver.execute_script("return document.querySelectorAll(arguments[0]).length", selector)


def test_dragging_on_the_curve_moves_the_input(shown):
    from selenium.webdriver.common.action_chains import ActionChains

    choose = """const s = document.querySelector('.ux-shown');
    s.value = [...s.options].find((o) => o.text === 'day').value; s.onchange();"""
    shown.execute_script(choose)
    wait(
        shown,
        "return document.querySelector('.ux-curve').getAttribute('aria-label').includes('day')",
    )
    before = find(shown, "input[aria-label='day, value']").get_attribute("value")
    ActionChains(shown).move_to_element_with_offset(
        find(shown, ".ux-curve"), 120, 0
    ).click().perform()
    wait(
        shown,
        f"return document.querySelector('input[aria-label=\"day, value\"]').value !== {before!r}",
    )


def test_a_link_restores_the_values_and_a_row_can_be_copied(shown, page):
    menu = (
        "const m = document.querySelector('select[aria-label=kind]'); m.value = '1'; m.onchange();"
    )
    shown.execute_script(menu)
    typed = find(shown, "input[aria-label='day, value']")
    shown.execute_script("arguments[0].value = '2020-07-01'; arguments[0].onchange()", typed)
    find(shown, ".ux-threshold").send_keys("2")
    find(shown, ".ux-link").click()
    link = wait(shown, "return document.querySelector('.ulmus-explorer').dataset.copied")
    estimate = find(shown, ".ux-estimate").text
    find(shown, ".ux-row").click()
    row = wait(
        shown,
        "const c = document.querySelector('.ulmus-explorer').dataset.copied;"
        "return c.includes('\\t') && c",
    )
    head, values, _ = (line.split("\t") for line in row.split("\n"))
    found = dict(zip(head, values, strict=True))
    assert found["day"] == "2020-07-01"
    assert {"estimate", "std_error", "conf_low", "conf_high", "pred_low", "pred_high"} <= set(found)
    opened(shown, link, DRAWN)
    assert find(shown, ".ux-estimate").text == estimate
    assert find(shown, "input[aria-label='day, value']").get_attribute("value") == "2020-07-01"
    assert find(shown, ".ux-exceedance-row").is_displayed()


def test_a_change_of_one_input_is_drawn_in_time(shown):
    script = """const explorer = document.getElementById("ulmus-explorer").explorer;
    const times = [];
    for (let i = 0; i < 12; i++) {
      explorer.values[4] += 0.1; explorer.curve = null;
      const start = performance.now(); explorer.draw(); times.push(performance.now() - start);
    }
    return times.sort((a, b) => a - b)[6];"""
    assert shown.execute_script(script) < 250  # 50 on a quiet machine: benchmarks/explore.py


def test_phone_dark_and_print(shown, page):
    resize(shown, 390)
    opened(shown, page.as_uri(), DRAWN)
    wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
    assert shown.execute_script(wide) <= 0
    resize(shown, 1280)
    assert find(shown, "#theme").text == "Dark colours: off"
    find(shown, "#theme").click()
    assert find(shown, "#theme").text == "Dark colours: on"
    colour = "return getComputedStyle(document.body).backgroundColor"
    assert shown.execute_script(colour) == "rgb(20, 24, 29)"
    printed = shown.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})
    assert len(printed["data"]) > 20_000


def test_a_page_without_rows(browser, tmp_path):
    frame, y = mixed_table()
    model = mapped_ensemble(4, 60).fit(frame, y)
    assert '"rows": null' in explorer_html(model, max_rows=0)
    write_explorer(model, tmp_path / "p.html", max_rows=0)
    opened(browser, (tmp_path / "p.html").as_uri(), DRAWN)
    assert not find(browser, ".ux-nearest-box").is_displayed()
    assert errors(browser) == []


# ------------------------------------------------------------ odd tables, links and screens


@pytest.fixture
def opened_page(browser, tmp_path):
    """Opens the page of a model, also at a link; no error may follow."""

    def show(model, link="", **options):
        path = write_explorer(model, tmp_path / "p.html", **options)
        opened(browser, path.as_uri() + link, DRAWN)
        return browser

    resize(browser, 1280)
    yield show
    resize(browser, 1280)
    assert errors(browser) == []


EXPLORER = "const explorer = document.getElementById('ulmus-explorer').explorer;"
TICKS = (
    "return [...document.querySelectorAll(arguments[0] + ' .ux-tick')].map((e) => e.textContent)"
)


def small_model(frame, y):
    return mapped_ensemble(3, 20).fit(frame, y)


def numbers_table(n=120):
    rng = np.random.default_rng(0)
    return pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})


@pytest.mark.parametrize("y", [0.1, 1e9])
def test_targets_that_only_round_off_separates(opened_page, y):
    frame = numbers_table()
    values = np.where(frame.a > 0, y, np.nextafter(y, 1))
    opened_page(small_model(frame, values))  # ticks of 1e-17 do not end the page


def test_large_values_have_the_digits_of_their_differences(opened_page):
    frame = numbers_table()
    noise = np.random.default_rng(1).normal(size=120)
    driver = opened_page(small_model(frame, 1e9 + 1e4 * (frame.a + noise)))
    low, high = find(driver, ".ux-observation").text.replace("\u2212", "-").split(" to ")
    assert float(high) - float(low) > 1e4
    ticks = driver.execute_script(TICKS, ".ux-ruler")
    assert len(set(ticks)) == len(ticks)


def test_dates_within_a_day_have_steps_and_times(opened_page):
    rng = np.random.default_rng(0)
    seconds = np.sort(rng.integers(0, 36000, 120))
    frame = pd.DataFrame({"t": pd.Timestamp("2019-03-01 08:00") + pd.to_timedelta(seconds, "s")})
    driver = opened_page(small_model(frame, seconds / 3600 + 0.1 * rng.normal(size=120)))
    typed = find(driver, "input[aria-label='t, value']")
    driver.execute_script("arguments[0].value = '2019-03-01T12:34'; arguments[0].onchange()", typed)
    wait(driver, EXPLORER + "return explorer.tableRow().includes('2019-03-01 12:34\\t')")
    assert find(driver, ".ux-status").text.startswith("Inside")
    slider = (
        "const s = document.querySelector('input[type=range]'); s.value = Number(s.value) + 0.1;"
    )
    driver.execute_script(slider + "s.oninput()")
    wait(driver, EXPLORER + "return explorer.tableRow().includes('2019-03-01 14:58')")
    assert "12:00" in driver.execute_script(TICKS, ".ux-curve")
    rows = find(driver, ".ux-nearest tbody").text.splitlines()
    shown = pd.to_datetime([" ".join(row.split()[-2:]) for row in rows])
    assert set(shown) <= set(frame.t)


def test_settings_of_a_link_are_no_inputs(opened_page, tmp_path):
    frame = numbers_table().rename(columns={"a": "level", "b": "threshold"})
    model = small_model(frame, frame.level)
    driver = opened_page(model, "#level=0.5&threshold=1.5&_level=0.8")
    state = EXPLORER + "return [...explorer.values, explorer.level, explorer.threshold]"
    assert driver.execute_script(state) == [0.5, 1.5, LEVELS.index(0.8), None]
    link = driver.execute_script(EXPLORER + "return explorer.link()")
    opened(driver, link, DRAWN)
    assert driver.execute_script(state) == [0.5, 1.5, LEVELS.index(0.8), None]


def test_a_category_that_is_called_missing(opened_page):
    kind = np.array([None, "(missing)", "a"], dtype=object)[np.arange(120) % 3]
    frame = numbers_table().assign(kind=kind)
    driver = opened_page(small_model(frame, frame.a + (frame.kind == "a")))
    script = """explorer.values[2] = explorer.start[2] = arguments[0];
    const row = explorer.tableRow(); explorer.start[2] = -1;
    const link = explorer.link(); location.hash = link.slice(link.indexOf('#'));
    explorer.readLink(); return [explorer.values[2], row.split('\\n')[1].split('\\t')[2]];"""
    found = [driver.execute_script(EXPLORER + script, i) for i in range(3)]
    assert found == [[0, "(missing)"], [1, "a"], [2, ""]]


def test_another_link_in_the_same_page_replaces_all_values(opened_page):
    frame = numbers_table()
    driver = opened_page(small_model(frame, frame.a), "#a=1&level=0.8&threshold=2")
    driver.execute_script("location.hash = '#b=1&level=0.99'")
    wait(driver, "return document.querySelector('.ux-level-text').textContent === '99 %'")
    state = EXPLORER + "return [explorer.values[0] === explorer.start[0], explorer.values[1]]"
    assert driver.execute_script(state) == [True, 1]
    assert find(driver, ".ux-threshold").get_attribute("value") == ""


@pytest.mark.parametrize(
    "link", ["#a=NaN", "#a=1e999", "#a=-1e308&b=1e308", "#wet=maybe", "#%FF=&"]
)
def test_links_with_odd_values(opened_page, link):
    frame = numbers_table().assign(wet=np.arange(120) % 2 == 0)
    driver = opened_page(small_model(frame, frame.a), link)
    values = driver.execute_script(EXPLORER + "return [...explorer.values, ...explorer.start]")
    assert np.all(np.isfinite(values))
    if "308" not in link:
        assert values[:3] == values[3:]


def test_whole_numbers_are_shown_with_all_digits(opened_page):
    frame = numbers_table().assign(id=20_230_101 + np.arange(120))
    driver = opened_page(small_model(frame, frame.a))
    typed = find(driver, "input[aria-label='id, value']")
    driver.execute_script("arguments[0].value = '20230177'; arguments[0].onchange()", typed)
    assert typed.get_attribute("value") == "20230177"


def test_a_copied_row_is_read_back(opened_page):
    import io

    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "kind": rng.choice(["a\tb", 'q"q', "x,y"], 120),
            "t": pd.Timestamp("2019-03-01 10:37:05") + pd.to_timedelta(np.arange(120), "D"),
            "big": rng.integers(10**14, 10**15, 120),
            "small": 1e-12 * rng.normal(size=120),
        }
    )
    model = small_model(frame, (frame.kind == "x,y") + 1e12 * frame.small)
    driver = opened_page(model)
    for kind in range(3):
        driver.execute_script(EXPLORER + "explorer.change(0, arguments[0])", kind)
        row = wait(driver, EXPLORER + "return !explorer.frame && explorer.tableRow()")
        read = pd.read_csv(io.StringIO(row), sep="\t", parse_dates=["t"])
        assert_allclose(model.predict(read[list(frame)]), read.estimate, rtol=1e-9)


def test_far_thresholds_leave_the_curve_its_scale(opened_page):
    frame = numbers_table()
    driver = opened_page(small_model(frame, frame.a))
    before = driver.execute_script(TICKS, ".ux-curve")
    driver.execute_script(EXPLORER + "explorer.set(() => { explorer.threshold = 1e300; })")
    wait(driver, "return !document.querySelector('.ux-exceedance-row').hidden")
    assert driver.execute_script(TICKS, ".ux-curve") == before


def test_very_narrow_screens(opened_page):
    driver = opened_page(small_model(numbers_table(), numbers_table().a))
    for width in (120, 60):
        resize(driver, width)
        opened(driver, driver.current_url, DRAWN)
