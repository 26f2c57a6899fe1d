"use strict";
// Without this script the page still contains all text and tables.
const root = document.documentElement;
const touched = matchMedia("(hover: none)").matches;
const HEIGHT = 380, PRINT_WIDTH = 660, PRINT_HEIGHT = 290;
const CONFIG = {
  displaylogo: false,
  displayModeBar: touched ? false : "hover",
  modeBarButtons: [["toImage", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
};
const figures = JSON.parse(document.getElementById("figures").textContent);
const chosen = {}; // index of the figure shown, by name

function color(name) {
  return getComputedStyle(root).getPropertyValue(name).trim();
}

// A copy in which names of colours are the colours of the page.
function coloured(value, key = "") {
  if (Array.isArray(value)) return value.map((each) => coloured(each, key));
  if (value && typeof value === "object") {
    return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, coloured(v, k)]));
  }
  return key.endsWith("color") && typeof value === "string" ? color(value) : value;
}

function axis(own) {
  // plotly misplaces an empty title with a standoff.
  const title = own.title.text ? { ...own.title, font: { size: 13 }, standoff: 8 } : own.title;
  const lines = { gridcolor: color("--grid"), zerolinecolor: color("--rule"), linecolor: color("--rule") };
  return { automargin: true, ...lines, ...coloured(own), title };
}

function layout(figure, width, height) {
  const own = figure.layout;
  return {
    ...coloured(own),
    width,
    height,
    margin: { l: 50, r: 16, t: 12, b: 45 },
    paper_bgcolor: color("--ground"),
    plot_bgcolor: color("--ground"),
    font: { family: getComputedStyle(document.body).fontFamily, color: color("--ink"), size: 13 },
    hoverlabel: { bgcolor: color("--panel"), font: { color: color("--ink") } },
    showlegend: figure.traces.length > 1,
    legend: { orientation: "h", x: 0, y: 1.02, yanchor: "bottom", traceorder: "normal" },
    bargap: 0.25,
    // On touch screens, moving over a figure scrolls the page.
    dragmode: touched ? false : "zoom",
    xaxis: axis(own.xaxis),
    yaxis: axis(own.yaxis),
  };
}

function draw(place, width = place.clientWidth, usual = HEIGHT) {
  const figure = figures[place.dataset.figure][chosen[place.dataset.figure] ?? 0];
  const height = figure.layout.height ?? usual;
  place.setAttribute("aria-label", figure.alt);
  place.style.height = `${height}px`;
  return Plotly.react(place, coloured(figure.traces), layout(figure, width, height), CONFIG);
}

function drawAll(size = () => []) {
  const places = [...document.querySelectorAll("[data-figure]")];
  return Promise.all(places.map((place) => draw(place, ...size(place))));
}

function printSize(place) {
  return [place.closest(".pair") ? PRINT_WIDTH / 2 - 12 : PRINT_WIDTH, PRINT_HEIGHT];
}

function show(name, which) {
  chosen[name] = which;
  for (const table of document.querySelectorAll(`[data-of="${name}"]`)) {
    table.hidden = Number(table.dataset.number) !== which;
  }
  return draw(document.querySelector(`[data-figure="${name}"]`));
}

function setTheme(theme) {
  root.dataset.theme = theme;
  document.getElementById("theme").setAttribute("aria-pressed", String(theme === "dark"));
}

async function inflated(text) {
  const bytes = Uint8Array.from(atob(text.trim()), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).text();
}

async function start() {
  const toggle = document.getElementById("theme");
  toggle.hidden = false;
  setTheme(root.dataset.theme);
  const script = document.createElement("script");
  script.textContent = await inflated(document.getElementById("plotly").textContent);
  document.head.append(script);
  for (const select of document.querySelectorAll("select[data-chooses]")) {
    select.disabled = false;
    select.addEventListener("change", () => show(select.dataset.chooses, select.selectedIndex));
  }
  await drawAll();
  for (const select of document.querySelectorAll("select[data-chooses]")) {
    await show(select.dataset.chooses, select.selectedIndex);
  }
  toggle.addEventListener("click", () => {
    setTheme(root.dataset.theme === "dark" ? "light" : "dark");
    drawAll();
  });
  let width = innerWidth, waiting;
  addEventListener("resize", () => {
    if (innerWidth === width) return;
    width = innerWidth;
    clearTimeout(waiting);
    waiting = setTimeout(drawAll, 150);
  });
  let before = "light";
  addEventListener("beforeprint", () => {
    before = root.dataset.theme;
    root.dataset.theme = "light";
    drawAll(printSize);
  });
  addEventListener("afterprint", () => {
    root.dataset.theme = before;
    drawAll();
  });
  document.getElementById("without-figures").remove();
  root.dataset.drawn = "yes";
}

start().catch((error) => {
  document.getElementById("without-figures").hidden = false;
  console.warn("The figures could not be drawn:", error);
});
