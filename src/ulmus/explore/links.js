// Links that open the page at some values, and rows that a spreadsheet pastes.

// The name of a setting in links, which is none of an input.
function settingName(explorer, name) {
  const isInput = explorer.controls.some((control) => control.name === name);
  return isInput ? settingName(explorer, `_${name}`) : name;
}

function linkOf(explorer) {
  const query = new URLSearchParams();
  explorer.controls.forEach((control, j) => {
    if (explorer.values[j] !== explorer.start[j]) query.set(control.name, valueText(control, explorer.values[j], true));
  });
  query.set(settingName(explorer, "level"), explorer.spec.observations.levels[explorer.level]);
  if (explorer.threshold !== null) query.set(settingName(explorer, "threshold"), explorer.threshold);
  return `${location.href.split("#")[0]}#${query}`;
}

// Values and settings of the link; those that it does not have are those of the start.
function readLink(explorer) {
  if (!explorer.spec.reads_link) return;
  const query = new URLSearchParams(location.hash.slice(1));
  explorer.controls.forEach((control, j) => {
    explorer.values[j] = parsedValue(control, query.get(control.name)) ?? explorer.start[j];
  });
  const level = explorer.spec.observations.levels.indexOf(Number(query.get(settingName(explorer, "level"))));
  explorer.level = level >= 0 ? level : explorer.spec.level;
  const threshold = query.get(settingName(explorer, "threshold"));
  explorer.threshold = threshold && Number.isFinite(Number(threshold)) ? Number(threshold) : null;
}

// Names and values, separated by tabs, as a spreadsheet pastes them.
function tableRow(explorer) {
  const { point, observation, mean } = explorer.now;
  const names = explorer.controls.map((control) => control.name);
  const results = {
    estimate: point.estimate, std_error: point.standardError,
    conf_low: mean[0], conf_high: mean[1], pred_low: observation[0], pred_high: observation[1],
  };
  const values = explorer.controls.map((control, j) => valueText(control, explorer.values[j], true));
  const head = [...names, ...Object.keys(results)], row = [...values, ...Object.values(results)];
  return [head, row].map((cells) => `${cells.map(cellText).join("\t")}\n`).join("");
}

async function copied(explorer, button, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = node("textarea", { class: "ux-clipboard" });
    area.value = text;
    explorer.root.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  explorer.root.dataset.copied = text;
  const before = (button.dataset.text ??= button.textContent);
  button.textContent = "Copied";
  setTimeout(() => (button.textContent = before), 1200);
}

// A value of a control as text in a link; null where it is none.
function parsedValue(control, text) {
  if (text === null) return null;
  if (control.kind === "category") {
    const i = control.labels.indexOf(text), last = control.labels.length - 1;
    if (text === "" && control.missing) return last;
    return i < 0 ? null : i;
  }
  if (control.kind === "boolean") return { true: 1, false: 0 }[text] ?? null;
  if (control.kind === "date") {
    const days = Date.parse(text.replace(" ", "T") + (text.length > 10 ? "Z" : "")) / 86400000;
    return Number.isFinite(days) ? days : null;
  }
  if (control.kind === "time") {
    const [hours, minutes, seconds = 0] = text.split(":").map(Number);
    const share = (hours + minutes / 60 + seconds / 3600) / 24;
    return Number.isFinite(share) ? share : null;
  }
  const number = Number(text);
  return text.trim() !== "" && Number.isFinite(number) ? number : null;
}
