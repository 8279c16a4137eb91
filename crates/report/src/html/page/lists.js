// The views that are lists: functions, calls, branches, what never ran, what was not counted, and
// the facts of the runs.

const executedColumns = [
  { title: "Executed", right: true, cell: (it) => shown(it.executed), value: (it) => size(it.executed) },
  {
    title: "Share",
    right: true,
    class: "share",
    cell: (it) => [
      span("number", share(it.executed, index.total.executed)),
      meter(fraction(it.executed, index.total.executed), "hot"),
    ],
  },
];

function functionColumns() {
  const columns = [
    { title: "Function", class: "long", cell: functionName, value: (it) => it.name.toLowerCase() },
    ...executedColumns,
    { title: "Calls", right: true, cell: (it) => shown(it.calls), value: (it) => size(it.calls) },
    {
      title: "Instructions",
      right: true,
      wide: true,
      cell: (it) => shown(it.instructions),
      value: (it) => it.instructions,
    },
    {
      title: "Never ran",
      right: true,
      wide: true,
      cell: (it) => (isNever(it.neverRan) ? span("muted", "0") : shown(it.neverRan)),
      value: (it) => size(it.neverRan),
    },
    {
      title: "Source",
      wide: true,
      cell: (it) => place(index.files[it.file], it.line),
      value: (it) => `${index.files[it.file]?.path ?? "~"}:${String(it.line).padStart(9, "0")}`,
    },
  ];
  if (index.modules.length > 1) {
    columns.push({
      title: "Module",
      wide: true,
      class: "module",
      cell: (it) => make("span", { title: index.modules[it.module].path }, index.modules[it.module].name),
      value: (it) => index.modules[it.module].name,
    });
  }
  return columns;
}

const ran = (it) => !isNever(it.executed);

/** Does all that was typed, word by word, occur in it? */
function matches(typed, ...texts) {
  const text = texts.join(" ").toLowerCase();
  return typed.toLowerCase().split(/\s+/).every((word) => text.includes(word));
}

/** What a function may be found by. */
function textsOf(it) {
  return [it.name, index.files[it.file]?.path ?? "", index.modules[it.module].path];
}

/** A field that narrows a list while one types, and the choices beside it. */
function filter({ label, choices, change }) {
  const field = make("input", {
    type: "search",
    class: "filter",
    "aria-label": label,
    placeholder: label,
    autocomplete: "off",
    spellcheck: "false",
    value: chosenHere().get("filter"),
    input: () => keep(),
  });
  const many = make("span", { class: "muted many" });
  let chosen = choices.find((it) => it === chosenHere().get("show")) ?? choices[0];
  const buttons = choices.map((choice) =>
    make("button", { type: "button", "aria-pressed": String(choice === chosen), click: () => choose(choice) }, choice),
  );
  function choose(choice) {
    chosen = choice;
    for (const it of buttons) it.setAttribute("aria-pressed", String(it.textContent === choice));
    keep();
  }
  function keep() {
    keepChosen("filter", field.value.trim(), "");
    keepChosen("show", chosen, choices[0]);
    update();
  }
  function update() {
    many.textContent = shown(change(field.value.trim(), chosen));
    announce(`${many.textContent} shown`);
  }
  const element = make(
    "div",
    { class: "filters" },
    field,
    make("div", { class: "choices", role: "group", "aria-label": "Which" }, buttons),
    many,
  );
  return { element, update };
}

/** A list with a filter above it. */
function filtered({ label, choices, rows, keep, list }) {
  const controls = filter({
    label,
    choices,
    change(typed, choice) {
      const kept = rows.filter((row) => keep(row, typed, choice));
      list.show(kept);
      return kept.length;
    },
  });
  controls.update();
  return [controls.element, list.element];
}

/** The events that have a column: those that the address names, or else those the page begins with. */
function chosenEvents() {
  const named = chosenHere().get("events");
  if (named === null) return index.shows_events ? index.events : [];
  return index.events.filter((it) => named.split(",").includes(it));
}

/** A button for each event, which shows or hides its column. */
function eventChoices(change) {
  if (index.events.length === 0) return null;
  const first = index.shows_events ? index.events.join(",") : "";
  const buttons = index.events.map((event) =>
    make("button", { type: "button", "aria-pressed": String(chosenEvents().includes(event)), click: () => toggle(event) }, event),
  );
  function toggle(event) {
    const chosen = index.events.filter((it) => chosenEvents().includes(it) !== (it === event));
    keepChosen("events", chosen.join(","), first);
    for (const it of buttons) it.setAttribute("aria-pressed", String(chosen.includes(it.textContent)));
    change();
  }
  return make(
    "div",
    { class: "filters" },
    span("muted", "Events"),
    make("div", { class: "choices events", role: "group", "aria-label": "Events" }, buttons),
  );
}

/** The columns of functions, with what they did behind how often they were called. */
function columnsWithEvents(amounts) {
  const columns = functionColumns();
  const events = chosenEvents().map((event) => {
    const place = index.events.indexOf(event);
    const amount = (it) => amounts.of(it, place);
    return { title: event, right: true, cell: (it) => shown(amount(it)), value: (it) => size(amount(it)) };
  });
  columns.splice(columns.findIndex((it) => it.title === "Calls") + 1, 0, ...events);
  return columns;
}

async function functionsView() {
  const amounts = index.events.length > 0 ? await eventAmounts() : null;
  const element = make("div");
  let rows = [];
  let list = null;
  function build() {
    list = table({
      caption: "Functions",
      columns: columnsWithEvents(amounts),
      rows,
      sort: "Executed",
      empty: "No such function.",
    });
    element.replaceChildren(...[list.element, chosenEvents().length > 0 && notes(amounts.notes)].filter(Boolean));
  }
  build();
  return [
    heading("Functions", "Instructions executed in each function itself, without those it calls."),
    eventChoices(build),
    filtered({
      label: "Filter by name, file or module",
      choices: ["Ran", "Never ran", "All"],
      rows: index.functions,
      keep: (it, typed, choice) =>
        (choice === "All" || ran(it) === (choice === "Ran")) &&
        matches(typed, ...textsOf(it)),
      list: {
        element,
        show(kept) {
          rows = kept;
          list.show(kept);
        },
      },
    }),
  ];
}

function calleeName(it) {
  if (it.callee) return functionName(it.callee);
  if (it.target === "*") return span("muted", "through a pointer");
  if (it.target.startsWith("=")) return span("code muted", breakable(it.target.slice(1)));
  return span("code muted", hex(it.target));
}

function callColumns({ caller = true, callee = true }) {
  return [
    { title: "Count", right: true, cell: (it) => countCell(it.count), value: (it) => size(it.count) },
    caller && { title: "Caller", class: "long", cell: (it) => functionName(it.caller), value: (it) => it.caller.name },
    callee && {
      title: "Callee",
      class: "long",
      cell: calleeName,
      value: (it) => it.callee?.name ?? String(it.target),
    },
    { title: "Kind", wide: true, cell: (it) => span("muted", it.isJump ? "jump" : "call"), value: (it) => it.isJump },
    { title: "Source", cell: (it) => place(it.file, it.line), value: (it) => `${it.file?.path}:${it.line}` },
    { title: "Address", wide: true, right: true, cell: (it) => span("code", hex(it.address)) },
  ].filter(Boolean);
}

function countCell(count) {
  return isNever(count) ? span("never", "never") : shown(count);
}

async function callsView() {
  const rows = await calls();
  const list = table({
    caption: "Calls",
    columns: callColumns({}),
    rows: [],
    sort: "Count",
    empty: "No such call.",
  });
  return [
    heading("Calls", "Every call instruction in a function that ran, and how often it was executed."),
    filtered({
      label: "Filter by caller, callee or file",
      choices: ["Made", "Never made", "All"],
      rows,
      keep: (it, typed, choice) =>
        (choice === "All" || isNever(it.count) === (choice === "Never made")) &&
        matches(typed, it.caller.name, it.callee?.name ?? "", it.file?.path ?? ""),
      list,
    }),
  ];
}

/** How often control went which way, in words. */
function wayWords({ kind, count }, all) {
  const name = { taken: "jumped", fall: "went on", jump: "table jump", leave: "left" }[kind] ?? kind;
  return [
    span(isNever(count) ? "never" : "", `${name} ${isNever(count) ? "never" : shown(count)}`),
    isNever(count) || all === null ? null : span("muted", ` ${share(count, all)}`),
  ];
}

/** How often a branch was met; null if not all of its ways were counted. */
function met(branch) {
  if (branch.ways.some((it) => it.count === null)) return null;
  return branch.ways.reduce((sum, it) => sum + size(it.count), 0);
}

const seen = (branch) => branch.ways.filter((it) => !isNever(it.count)).length;

/** The ways of one branch, one after the other; of large tables the first ones. */
function ways(branch) {
  const MOST = 6;
  const all = met(branch);
  const some = branch.ways.slice(0, MOST).map((it) => span("way", wayWords(it, all)));
  const rest = branch.ways.length - some.length;
  return [some, rest > 0 ? span("way muted", `and ${rest} more`) : null];
}

async function branchesView() {
  const rows = await branches();
  const list = table({
    caption: "Branches",
    columns: [
      {
        title: "Met",
        right: true,
        cell: (it) => (met(it) === null ? "–" : countCell(met(it))),
        value: (it) => met(it) ?? -1,
      },
      {
        title: "Outcomes seen",
        right: true,
        cell: (it) => `${seen(it)} of ${it.ways.length}`,
        value: (it) => seen(it) / it.ways.length,
      },
      { title: "Ways", class: "long", cell: ways },
      { title: "Source", cell: (it) => place(it.file, it.line), value: (it) => `${it.file?.path}:${it.line}` },
      { title: "Function", wide: true, class: "long", cell: (it) => functionName(it.function), value: (it) => it.function.name },
    ],
    rows: [],
    sort: "Met",
    empty: "No such branch.",
  });
  const isPartial = (it) => met(it) !== 0 && seen(it) < it.ways.length;
  return [
    heading("Branches", "Where control had a choice in functions that ran: conditional jumps and jump tables."),
    filtered({
      label: "Filter by function or file",
      choices: ["Some seen", "All seen", "Never met", "All"],
      rows,
      keep: (it, typed, choice) =>
        (choice === "All" ||
          (choice === "Some seen" && isPartial(it)) ||
          (choice === "All seen" && seen(it) === it.ways.length) ||
          (choice === "Never met" && met(it) === 0)) &&
        matches(typed, it.function.name, it.file?.path ?? ""),
      list,
    }),
  ];
}

function neverView() {
  const stretches = ownFiles().flatMap((file) => file.never.map(([first, last]) => ({ file, first, last })));
  const lines = table({
    caption: "Lines that never ran",
    columns: [
      {
        title: "Lines",
        class: "long",
        cell: (it) =>
          make(
            "a",
            { href: fileLink(it.file, it.first), class: "place", title: it.file.path },
            breakable(it.first === it.last ? `${it.file.path}:${it.first}` : `${it.file.path}:${it.first}–${it.last}`),
          ),
        value: (it) => `${it.file.path}:${String(it.first).padStart(9, "0")}`,
      },
      { title: "Span", right: true, cell: (it) => shown(it.last - it.first + 1), value: (it) => it.last - it.first },
    ],
    rows: stretches,
    sort: "Span",
    empty: "Every line with counted code ran.",
  });
  const own = new Set(ownFiles().map((it) => it.id));
  const functions = table({
    caption: "Functions that never ran",
    columns: functionColumns().filter((it) => !["Executed", "Share", "Calls", "Never ran"].includes(it.title)),
    rows: [],
    sort: "Instructions",
    empty: "Every counted function ran.",
  });
  const rows = index.functions.filter((it) => !ran(it));
  return [
    heading("Never ran", "Code that is in the program and was not executed. What is not in the program at all, such as functions that nothing calls and the linker dropped, has no count."),
    make("h2", null, `Lines (${number(stretches.length, "stretch", "stretches")})`),
    lines.element,
    make("h2", null, "Functions"),
    filtered({
      label: "Filter by name, file or module",
      choices: own.size > 0 ? ["With source here", "All"] : ["All"],
      rows,
      keep: (it, typed, choice) => (choice === "All" || own.has(it.file)) && matches(typed, ...textsOf(it)),
      list: functions,
    }),
  ];
}

function refusedView() {
  const list = table({
    caption: "Not counted",
    columns: [
      { title: "What", class: "long", cell: (it) => breakable(it.subject), value: (it) => it.subject },
      { title: "Why", cell: (it) => it.reason, value: (it) => it.reason },
      {
        title: "Where",
        wide: true,
        cell: (it) => breakable(it.file === "" ? it.module : `${it.file}${it.line > 0 ? `:${it.line}` : ""}`),
        value: (it) => it.file || it.module,
      },
    ],
    rows: index.refused,
    sort: "What",
    empty: "Nothing was refused.",
  });
  return [
    heading("Not counted", "A number in this report is exact, or what it is about stands here with the reason."),
    notes(),
    list.element,
  ];
}

function notes(shownOnes = index.notes) {
  if (shownOnes.length === 0) return null;
  return make(
    "section",
    { class: "notes", "aria-label": "Notes" },
    make("ul", null, shownOnes.map((it) => make("li", null, it))),
  );
}

function heading(title, words) {
  return make(
    "div",
    { class: "heading" },
    make("h1", { tabindex: "-1" }, title),
    words ? make("p", { class: "muted" }, words) : null,
  );
}

const SIGNALS = { 1: "HUP", 2: "INT", 3: "QUIT", 4: "ILL", 5: "TRAP", 6: "ABRT", 7: "BUS", 8: "FPE", 9: "KILL", 11: "SEGV", 13: "PIPE", 14: "ALRM", 15: "TERM" };

/** How a run ended, and whether that was well. */
function ending(status) {
  if (status === null) return { words: "nobody saw its end", well: false };
  if (status > 128) {
    const signal = status - 128;
    const name = SIGNALS[signal] ? ` (SIG${SIGNALS[signal]})` : "";
    return { words: `killed by signal ${signal}${name}`, well: false };
  }
  return { words: `exit status ${status}`, well: status === 0 };
}

function badge(status) {
  const { words, well } = ending(status);
  return span(`badge ${well ? "well" : "ill"}`, words);
}

function command(run) {
  return run.command.length === 0 ? "(unknown command)" : run.command.join(" ");
}

function runView() {
  const runs = index.runs.map((run) =>
    make(
      "section",
      { class: "facts" },
      make("h2", { class: "code" }, command(run)),
      make(
        "dl",
        null,
        make("dt", null, "Ended"),
        make("dd", null, badge(run.status)),
        make("dt", null, "Processor"),
        make("dd", null, run.cpu || "unknown"),
        make("dt", null, "Processes, threads"),
        make("dd", null, `${shown(run.processes)}, ${shown(run.threads)}`),
      ),
    ),
  );
  return [
    heading("Run", index.runs.length > 1 ? `The counts of ${index.runs.length} runs, added up.` : null),
    runs,
    make("h2", null, "Modules"),
    moduleTable(),
    notes(),
  ];
}

function moduleTable() {
  return table({
    caption: "Modules",
    columns: [
      { title: "Module", class: "long", cell: (it) => make("span", { title: it.path }, breakable(it.path)), value: (it) => it.path },
      ...executedColumns,
      { title: "Build-id", wide: true, class: "long", cell: (it) => span("code muted", it.build_id) },
    ],
    rows: index.modules.map((it) => ({ ...it, ...it.tally })),
    sort: "Executed",
    empty: "No module.",
  }).element;
}

/** Files and functions whose names contain what was typed. */
function findView(typed) {
  const files = index.files.filter((it) => matches(typed, it.path));
  const functions = index.functions.filter((it) => matches(typed, it.name));
  const fileList = table({
    caption: "Files",
    columns: [
      { title: "File", class: "long", cell: (it) => make("a", { href: fileLink(it) }, breakable(it.path)), value: (it) => it.path },
      ...executedColumns,
    ],
    rows: files,
    sort: "Executed",
    empty: "No file.",
  });
  const functionList = table({
    caption: "Functions",
    columns: functionColumns(),
    rows: functions,
    sort: "Executed",
    empty: "No function.",
  });
  announce(`${number(files.length, "file")}, ${number(functions.length, "function")}`);
  return [
    heading(typed ? `“${typed}”` : "Find"),
    make("h2", null, `Files (${shown(files.length)})`),
    fileList.element,
    make("h2", null, `Functions (${shown(functions.length)})`),
    functionList.element,
  ];
}
