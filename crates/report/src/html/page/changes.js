// What changed since the other run that the page was made of.

let changesKnown = null;

async function changes() {
  if (changesKnown) return changesKnown;
  const known = await piece("changes");
  const functions = known.functions.map(([place, name, [old, now], [oldCalls, calls], lines, allLines]) => ({
    it: index.functions[place] ?? null,
    name,
    old,
    now,
    oldCalls,
    calls,
    by: difference(old ?? 0, now ?? 0),
    lines,
    allLines,
  }));
  const lines = functions.flatMap((of) =>
    of.lines.map(([file, name, [oldLine, line], [old, now]]) => ({
      of,
      file: index.files[file] ?? null,
      name,
      oldLine,
      line,
      old,
      now,
      by: difference(old, now),
    })),
  );
  changesKnown = { ...known, functions, lines };
  return changesKnown;
}

/** Exact, however large the counts are. */
function difference(old, now) {
  return BigInt(String(now).replace(">", "")) - BigInt(String(old).replace(">", ""));
}

function signed(number) {
  return `${number > 0 ? "+" : number < 0 ? "−" : ""}${shown(number < 0 ? -number : number)}`;
}

/** By how much, in percent of what it was. */
function growth(old, now) {
  if (old === null) return "new";
  if (now === null) return "gone";
  if (size(old) === 0) return size(now) === 0 ? "0.0%" : "from 0";
  const part = (size(now) - size(old)) / size(old);
  return `${part > 0 ? "+" : part < 0 ? "−" : ""}${percent(Math.abs(part))}`;
}

const changeColumns = [
  { title: "Change", right: true, cell: (it) => signed(it.by), value: (it) => (it.by < 0 ? -it.by : it.by) },
  { title: "Percent", right: true, wide: true, cell: (it) => span("muted", growth(it.old, it.now)) },
  { title: "Old", right: true, wide: true, cell: (it) => shown(it.old), value: (it) => size(it.old) },
  { title: "New", right: true, cell: (it) => shown(it.now), value: (it) => size(it.now) },
];

const changedFunction = (it) => (it.it ? functionName(it.it) : span("code", breakable(it.name)));

/** Where a line is now, and where it was, if that is another place. */
function changedLine({ file, name, line, oldLine }) {
  if (line === 0) return span("muted code", `${baseName(name)}:${oldLine} (gone)`);
  const at = file ? place(file, line) : span("code", `${baseName(name)}:${line}`);
  return oldLine > 0 && oldLine !== line ? [at, span("muted", ` (was ${oldLine})`)] : at;
}

async function changesView() {
  const { commands, executed, functions, lines, unchanged, notes } = await changes();
  const [old, now] = executed;
  const byFunction = table({
    caption: "Functions that differ",
    columns: [
      ...changeColumns,
      { title: "Function", class: "long", cell: changedFunction, value: (it) => it.name.toLowerCase() },
      { title: "Calls", right: true, wide: true, cell: (it) => (it.oldCalls === it.calls ? shown(it.calls) : `${shown(it.oldCalls)} → ${shown(it.calls)}`) },
    ],
    rows: [],
    sort: "Change",
    empty: "No function differs.",
  });
  const byLine = table({
    caption: "Lines that differ",
    columns: [
      ...changeColumns,
      { title: "Line", cell: changedLine, value: (it) => `${it.name}:${String(it.line).padStart(9, "0")}` },
      { title: "Function", class: "long", wide: true, cell: (it) => changedFunction(it.of), value: (it) => it.of.name.toLowerCase() },
    ],
    rows: lines,
    sort: "Change",
    empty: "No line differs.",
  });
  return [
    heading("Changes", `Instructions executed: ${shown(old)} before (${commands[0]}), ${shown(now)} now (${commands[1]}).`),
    make(
      "div",
      { class: "cards" },
      card("Change", signed(difference(old, now)), growth(old, now)),
      card("Functions that differ", shown(functions.length), `${shown(unchanged)} are the same`),
      card("Lines that differ", shown(functions.reduce((sum, it) => sum + it.allLines, 0)), "the largest changes are below"),
    ),
    notes.length > 0 ? make("section", { class: "notes", "aria-label": "Notes" }, make("ul", null, notes.map((it) => make("li", null, it)))) : null,
    make("h2", null, "Functions"),
    filtered({
      label: "Filter by name",
      choices: ["All", "More", "Less"],
      rows: functions,
      keep: (it, typed, choice) => (choice === "All" || (choice === "More" ? it.by > 0 : it.by < 0)) && matches(typed, it.name),
      list: byFunction,
    }),
    make("h2", null, "Lines"),
    byLine.element,
  ];
}
