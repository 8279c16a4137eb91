// The first view: what ran, how much of it, where it is hot, and the tree of files.

function overview() {
  return [
    title(),
    cards(),
    notes(index.notes.slice(0, index.own_notes)),
    whereItIsHot(),
    make("h2", null, "Hottest functions"),
    hottest(),
    index.hotLines.length > 0 ? [make("h2", null, "Hottest lines"), hottestLines()] : null,
    index.files.length > 0 ? [make("h2", null, "Files"), tree(), leftOut()] : null,
    index.modules.length > 1 ? [make("h2", null, "Modules"), moduleTable()] : null,
  ];
}

function title() {
  const [run] = index.runs;
  const words =
    index.runs.length === 1 ? [span("code", command(run)), " ", badge(run.status)] : `Sum of ${index.runs.length} runs`;
  return make(
    "div",
    { class: "heading" },
    make("h1", { tabindex: "-1" }, words),
    index.narrowed ? make("p", { class: "muted" }, "Narrowed to some functions and files.") : null,
  );
}

function card(title, value, detail, href, part) {
  return make(
    href ? "a" : "div",
    { class: "card", href },
    span("label", title),
    span("value", value),
    part === undefined ? null : meter(part, "ran"),
    span("words", detail),
  );
}

/** What the page compares, at a glance. */
function changeCard() {
  const change = card("Change", "…", "", "#/changes");
  changes().then(({ commands, executed: [old, now] }) => {
    change.replaceWith(card("Change", signed(difference(old, now)), `${growth(old, now)} compared with ${commands[0]}`, "#/changes"));
  });
  return change;
}

/** The reader's own files; all, if there is none. */
function ownFiles() {
  const own = index.files.filter((it) => !it.isOfALibrary);
  return own.length > 0 ? own : index.files;
}

/** The reader's own functions; all, if there is none. */
function ownFunctions() {
  const own = index.functions.filter((it) => it.isOwn);
  return own.length > 0 ? own : index.functions;
}

function cards() {
  const sum = (of) => ownFiles().reduce((sum, it) => sum + of(it), 0);
  const [lines, ranLines] = [sum((it) => it.lines), sum((it) => it.ran)];
  const functions = ownFunctions();
  const own = new Set(functions);
  const ranFunctions = functions.filter(ran).length;
  const others = functions.length < index.functions.length ? `; ${shown(index.functions.filter(ran).length)} of ${shown(index.functions.length)} in all` : "";
  const { executed, instructions, neverRan } = index.total;
  const refused = index.refused.length;
  const all = [
    card("Instructions executed", shown(executed), `${shown(neverRan)} of ${shown(instructions)} never ran`, "#/functions"),
    card(
      "Functions that ran",
      share(ranFunctions, functions.length),
      `${shown(ranFunctions)} of ${shown(functions.length)}${others}`,
      "#/functions",
      fraction(ranFunctions, functions.length),
    ),
  ];
  if (lines > 0) {
    all.push(
      card("Lines that ran", share(ranLines, lines), `${shown(ranLines)} of ${shown(lines)} with code`, "#/never", fraction(ranLines, lines)),
    );
  }
  const ofBranches = card("Branch outcomes seen", "…", "", "#/branches", 0);
  all.push(ofBranches);
  branches().then((rows) => {
    const counted = rows.filter((it) => met(it) !== null && own.has(it.function));
    const waysSeen = counted.reduce((sum, it) => sum + seen(it), 0);
    const waysAll = counted.reduce((sum, it) => sum + it.ways.length, 0);
    const detail = waysAll > 0 ? `${shown(waysSeen)} of ${shown(waysAll)} in functions that ran` : "no branch was counted";
    ofBranches.replaceWith(card("Branch outcomes seen", share(waysSeen, waysAll), detail, "#/branches", fraction(waysSeen, waysAll)));
  });
  if (index.changes) all.unshift(changeCard());
  all.push(
    card("Not counted", refused === 0 ? "nothing" : shown(refused), notCounted(refused), "#/refused"),
  );
  return make("div", { class: "cards" }, all);
}

function notCounted(refused) {
  if (refused > 0) return "each with its reason";
  return index.notes.length > 0 ? "but see the notes" : "every count is exact";
}

function whereItIsHot() {
  const map = treeMap(ownFiles());
  if (!map) return null;
  const words = "Each area is a file. Its size is the number of instructions that its lines executed, inlined code included; the greener it is, the more of its lines ran.";
  return [make("h2", null, "Where it is hot"), map, make("p", { class: "muted" }, words)];
}

function hottestLines() {
  return table({
    caption: "Hottest lines",
    columns: [
      { title: "Line", cell: (it) => place(it.file, it.line), value: (it) => `${it.file.path}:${String(it.line).padStart(9, "0")}` },
      { title: "Text", class: "long", cell: (it) => span("code", it.text.trim()) },
      { title: "Count", right: true, cell: (it) => shown(it.count), value: (it) => size(it.count) },
      ...executedColumns,
    ],
    rows: index.hotLines,
    sort: "Executed",
    empty: "No line ran.",
  }).element;
}

function hottest() {
  const rows = ownFunctions().filter(ran).sort((a, b) => size(b.executed) - size(a.executed)).slice(0, 12);
  return [
    table({ caption: "Hottest functions", columns: functionColumns(), rows, sort: "Executed", empty: "No function ran." }).element,
    make("p", null, make("a", { href: "#/functions" }, `All ${number(index.functions.length, "function")}`)),
  ];
}

function leftOut() {
  if (index.files_left_out === 0) return null;
  const words = `${number(index.files_left_out, "more file")} of which nothing ran and whose text was not found: left out.`;
  return make("p", { class: "muted" }, words);
}

// The tree: folders with all that is in them, folders with one folder in them as one.

function folder(name) {
  return { name, folders: new Map(), files: [], executed: 0, isSure: true, lines: 0, ran: 0 };
}

function treeOf(files) {
  const root = folder("");
  for (const file of files) {
    const parts = file.path.split("/");
    const name = parts.pop();
    let at = root;
    add(at, file);
    for (const [i, part] of parts.entries()) {
      const key = part === "" && i === 0 ? "/" : part;
      if (!at.folders.has(key)) at.folders.set(key, folder(key));
      at = at.folders.get(key);
      add(at, file);
    }
    at.files.push({ name, file });
  }
  return joined(root);
}

function add(folder, file) {
  folder.executed += Math.max(0, size(file.executed));
  folder.isSure &&= typeof file.executed === "number";
  folder.lines += file.lines;
  folder.ran += file.ran;
}

function joined(folder) {
  for (const [key, inner] of folder.folders) folder.folders.set(key, joined(inner));
  if (folder.folders.size === 1 && folder.files.length === 0) {
    const [only] = folder.folders.values();
    const name = folder.name === "" || folder.name === "/" ? folder.name + only.name : `${folder.name}/${only.name}`;
    return { ...only, name };
  }
  return folder;
}

/** How many rows the tree may have before folders begin closed. */
const OPEN_ROWS = 60;

function tree() {
  const body = make("tbody");
  const groups = [
    ["", index.files.filter((it) => it.hasText)],
    ["source not found", index.files.filter((it) => !it.hasText && !it.isOfALibrary)],
    ["libraries", index.files.filter((it) => !it.hasText && it.isOfALibrary)],
  ].filter(([, files]) => files.length > 0);
  for (const [place, [name, files]] of groups.entries()) {
    const root = treeOf(files);
    const isOpen = place === 0 && files.length <= OPEN_ROWS;
    if (name !== "") addFolder(body, { ...root, name }, 0, null, false, place === 0);
    else if (root.name !== "") addFolder(body, { ...root, name: `${root.name}/` }, 0, null, isOpen, true);
    else addInside(body, root, 0, null, isOpen);
  }
  return make(
    "div",
    { class: "table tree" },
    make(
      "table",
      null,
      make("caption", { class: "hidden" }, "Files, by folder"),
      make(
        "thead",
        null,
        make(
          "tr",
          null,
          make("th", { scope: "col" }, "File"),
          make("th", { scope: "col", class: "right" }, "Lines that ran"),
          make("th", { scope: "col", class: "right wide" }, "Lines"),
          make("th", { scope: "col", class: "right wide" }, "Executed"),
          make("th", { scope: "col", class: "right share" }, "Share"),
        ),
      ),
      body,
    ),
  );
}

function addInside(body, folder, depth, parent, open) {
  const byName = (a, b) => (a.name < b.name ? -1 : 1);
  for (const inner of [...folder.folders.values()].sort(byName)) addFolder(body, { ...inner, name: `${inner.name}/` }, depth, parent, open, open);
  for (const { name, file } of folder.files.sort(byName)) {
    const link = make("a", { href: fileLink(file), class: "name" }, name);
    addRow(body, link, file, depth, parent);
  }
}

/** A row with all in it below; the rows inside are made when it is first opened. */
function addFolder(body, folder, depth, parent, open, isOpen) {
  const node = { children: [], isOpen: false, isMade: false };
  const button = make("button", { type: "button", class: "fold", "aria-expanded": "false" }, breakable(folder.name));
  const sums = { ...folder, executed: folder.isSure ? folder.executed : null };
  const row = addRow(body, button, sums, depth, parent);
  node.row = row;
  row.node = node;
  const toggle = () => {
    node.isOpen = !node.isOpen;
    button.setAttribute("aria-expanded", String(node.isOpen));
    if (!node.isMade) {
      node.isMade = true;
      const rows = make("tbody");
      addInside(rows, folder, depth + 1, node, open);
      row.after(...rows.children);
    }
    reveal(node, node.isOpen);
  };
  button.addEventListener("click", toggle);
  if (isOpen) toggle();
}

function reveal(node, visible) {
  for (const row of node.children) {
    row.hidden = !visible;
    if (row.node) reveal(row.node, visible && row.node.isOpen);
  }
}

function addRow(body, name, it, depth, parent) {
  const row = make(
    "tr",
    null,
    make("td", { class: "long", "--depth": depth }, name),
    make("td", { class: "right share" }, span("number", share(it.ran, it.lines)), meter(fraction(it.ran, it.lines), "ran")),
    make("td", { class: "right wide" }, it.lines === 0 ? "–" : [shown(it.ran), span("muted", ` of ${shown(it.lines)}`)]),
    make("td", { class: "right wide" }, shown(it.executed)),
    make(
      "td",
      { class: "right share" },
      span("number", share(it.executed, index.total.executed)),
      meter(fraction(it.executed, index.total.executed), "hot"),
    ),
  );
  parent?.children.push(row);
  body.append(row);
  return row;
}
