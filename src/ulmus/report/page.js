"use strict";
// Without this script the page is complete, in the colours of the system.
const root = document.documentElement;
const button = document.getElementById("theme");

function setTheme(theme) {
  root.dataset.theme = theme;
  button.textContent = `Colours: ${theme}`;
}

// A link to a folded part opens it.
function unfold() {
  const part = location.hash && document.getElementById(location.hash.slice(1));
  if (part && part.tagName === "DETAILS") part.open = true;
}

setTheme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
button.hidden = false;
button.addEventListener("click", () => setTheme(root.dataset.theme === "dark" ? "light" : "dark"));
addEventListener("hashchange", unfold);
unfold();
