// Which view is shown, and the keys.

const VIEWS = [
  { path: "", name: "Overview", show: overview },
  { path: "changes", name: "Changes", show: changesView, isThere: () => index.changes },
  { path: "functions", name: "Functions", show: functionsView },
  { path: "tree", name: "Call tree", show: treeView },
  { path: "time", name: "Time", show: timeView, isThere: () => index.time },
  { path: "calls", name: "Calls", show: callsView },
  { path: "values", name: "Values", show: valuesView, isThere: () => index.values },
  { path: "branches", name: "Branches", show: branchesView },
  { path: "never", name: "Never ran", show: neverView },
  { path: "refused", name: "Not counted", show: refusedView },
  { path: "run", name: "Run", show: runView },
];

const KEYS = [
  ["/", "Find a file or a function"],
  ["1 … 9, 0", "The views, from left to right"],
  ["j  k", "In a source: next or previous line with code"],
  ["Enter", "Its blocks and instructions"],
  ["n  N", "Next or previous line that never ran"],
  ["h  H", "Next or previous hot line"],
  ["b  B", "Next or previous branch that went only some of its ways"],
  ["t", "Light, dark, or as the system says"],
  ["?", "This list"],
];

/** The views that there is something to see in. */
function views() {
  return VIEWS.filter((it) => it.isThere?.() ?? true);
}

const content = document.getElementById("content");
const findField = document.getElementById("find");

/**
 * What the address says: a view, or a file and a line, or a function, or something to find. What the
 * reader chose in it stands behind a `?`, so that one can come back to it.
 */
function route() {
  const hash = location.hash.startsWith("#/") ? location.hash.slice(2).split("?")[0] : "";
  const [, kind, rest] = /^(file|function|find)\/(.*)$/s.exec(hash) ?? [null, hash, ""];
  return { kind, rest };
}

/** What the address says; text that is no address of ours stays as it is. */
function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function viewOf({ kind, rest }) {
  if (kind === "file") {
    const [, path, line] = /^(.*?)(?::(\d+))?$/s.exec(rest);
    return { name: baseName(decoded(path)), parts: await fileView(decoded(path), Number(line ?? 0)) };
  }
  if (kind === "function") return { name: decoded(rest), parts: await functionView(decoded(rest)) };
  if (kind === "find") return { name: "Find", parts: findView(decoded(rest)) };
  const view = views().find((it) => it.path === kind) ?? VIEWS[0];
  return { name: view.name, parts: await view.show() };
}

let latest = 0;

/** Shows what the address says. Where a view takes its time, only the last one asked for counts. */
async function show() {
  const at = route();
  const mine = ++latest;
  const line = lineInOpenFile(at);
  if (line) return openFile.goTo(line, false);
  openFile = null;
  mark(at.kind);
  fillFind(at);
  let parts, name;
  try {
    ({ parts, name } = await viewOf(at));
  } catch (error) {
    parts = [heading("This cannot be shown", String(error?.message ?? error))];
    name = "Error";
  }
  if (mine !== latest) return;
  const all = parts.flat(Infinity).filter(Boolean);
  content.replaceChildren(...all.filter((it) => typeof it !== "function"));
  document.title = `${name} - ${programName} - headcount`;
  if (at.kind !== "find") {
    scrollTo(0, 0);
    content.querySelector("h1")?.focus({ preventScroll: true });
  }
  all.filter((it) => typeof it === "function").forEach((after) => after());
}

/** The field says what is shown, unless somebody types. */
function fillFind({ kind, rest }) {
  if (document.activeElement !== findField) findField.value = kind === "find" ? decoded(rest) : "";
}

/** Another line of the file that is shown already. */
function lineInOpenFile({ kind, rest }) {
  const [, path, line] = /^(.*?)(?::(\d+))?$/s.exec(rest);
  return kind === "file" && openFile?.file.path === decoded(path) ? Number(line ?? 0) : 0;
}

let programName = "";

function mark(kind) {
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.path === kind) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "center" });
    } else link.removeAttribute("aria-current");
  }
}

function fillBar() {
  const [run] = index.runs;
  programName = index.runs.length === 1 && run.command.length > 0 ? baseName(run.command[0]) : "runs";
  document.getElementById("views").append(
    ...views().map((it) => {
      const count = it.path === "refused" && index.refused.length > 0 ? span("count", shown(index.refused.length)) : null;
      return make("a", { href: `#/${it.path}`, "data-path": it.path }, it.name, count);
    }),
  );
  findField.addEventListener("input", () => {
    const typed = findField.value.trim();
    history.replaceState(null, "", typed ? `#/find/${encodeURIComponent(typed)}` : "#/");
    show();
  });
  findField.addEventListener("keydown", (event) => {
    if (event.key === "Escape") findField.blur();
    if (event.key === "Enter") content.querySelector("tbody a")?.click();
  });
}

// Light or dark. A page that is opened from disk may not be allowed to remember it.

const THEMES = ["auto", "light", "dark"];

function remembered(name, value) {
  try {
    if (value !== undefined) localStorage.setItem(name, value);
    return localStorage.getItem(name);
  } catch {
    return null;
  }
}

function setTheme(theme) {
  document.documentElement.dataset.theme = theme;
  const button = document.getElementById("theme");
  const sign = { auto: "◐", light: "○", dark: "●" }[theme];
  button.textContent = sign;
  button.setAttribute("aria-label", `Theme: ${theme}`);
  button.title = `Theme: ${theme}`;
  openFile?.repaint?.();
}

function nextTheme() {
  const now = document.documentElement.dataset.theme;
  const next = THEMES[(THEMES.indexOf(now) + 1) % THEMES.length];
  remembered("headcount-theme", next);
  setTheme(next);
}

function fillKeys() {
  const dialog = document.getElementById("keys");
  dialog.append(
    make("h2", { id: "keys-title" }, "Keys"),
    make("dl", null, KEYS.map(([keys, words]) => [make("dt", null, make("kbd", null, keys)), make("dd", null, words)])),
    make("button", { type: "button", click: () => dialog.close() }, "Close"),
  );
  document.getElementById("help").addEventListener("click", () => dialog.showModal());
}

/** The tenth has the key that follows 9. */
function viewOfKey(key) {
  return views()["1234567890".indexOf(key)];
}

function onKey(event) {
  const isTyping = event.target.closest?.("input, select, textarea, dialog");
  if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
  const anyLine = () => true;
  const steps = {
    j: [anyLine, 1],
    k: [anyLine, -1],
    n: [isCold, 1],
    N: [isCold, -1],
    h: [(it) => openFile.isHot(it), 1],
    H: [(it) => openFile.isHot(it), -1],
    b: [(it) => openFile.isPartial(it), 1],
    B: [(it) => openFile.isPartial(it), -1],
  };
  if (openFile && steps[event.key]) openFile.next(...steps[event.key]);
  else if (openFile?.current && event.key === "Enter" && !event.target.closest("a, button")) openFile.toggle(openFile.current);
  else if (event.key === "/") findField.focus();
  else if (event.key === "t") nextTheme();
  else if (event.key === "?") document.getElementById("keys").showModal();
  else if (viewOfKey(event.key)) location.hash = `#/${viewOfKey(event.key).path}`;
  else return;
  event.preventDefault();
}

async function begin() {
  setTheme(remembered("headcount-theme") ?? "auto");
  if (typeof DecompressionStream === "undefined" || !CSS.supports("color", "light-dark(red, red)")) {
    content.replaceChildren(heading("This browser is too old", "The page needs one of 2024 or later."));
    return;
  }
  await openIndex();
  fillBar();
  fillKeys();
  addEventListener("hashchange", show);
  document.querySelector(".skip").addEventListener("click", (event) => {
    event.preventDefault();
    content.focus();
  });
  addEventListener("keydown", onKey);
  await show();
  document.documentElement.dataset.ready = "yes";
}

begin();
