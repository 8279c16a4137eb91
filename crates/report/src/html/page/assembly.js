// Blocks and instructions with their counts: all of a function, or those of one line.

async function functionView(key) {
  const it = index.functionByKey.get(key);
  if (!it) return [heading("No such function", `Nothing that was counted is called ${key}.`)];
  const file = index.files[it.file];
  const module = index.modules[it.module];
  const sites = await calls();
  const copies = await inlinedCalls();
  const code = await codeOf(it);
  const source = await sourceOf(it);
  const node = (await callGraph()).nodes.find((node) => node.it === it);
  const facts = [
    ["Calls", shown(it.calls)],
    ["Executed", `${shown(it.executed)} (${share(it.executed, index.total.executed)})`],
    node && ["With all it calls", `${shown(node.inclusive)} (${share(node.inclusive, index.total.executed)}), an estimate`],
    ["Instructions", `${shown(it.instructions)}, of which ${shown(it.neverRan)} never ran`],
    ["Blocks", shown(it.blocks)],
    ["Source", place(file, it.line)],
    ["Module", module.path],
  ].filter(Boolean);
  return [
    make("div", { class: "heading" }, make("h1", { tabindex: "-1", class: "code" }, breakable(it.name))),
    make("dl", { class: "facts" }, facts.map(([name, value]) => [make("dt", null, name), make("dd", null, value)])),
    callTable("Called from", sites.filter((site) => site.callee === it), { callee: false }, "No call instruction that is counted names it: it is called through a pointer, from elsewhere, or not at all."),
    callTable("Calls made", sites.filter((site) => site.caller === it), { caller: false }, ran(it) ? "It calls nothing." : "It never ran."),
    inlinedTable("Inlined into", copies.filter((copy) => copy.callee === it), (copy) => copy.caller),
    inlinedTable("Inlined here", copies.filter((copy) => copy.caller === it), (copy) => copy.callee),
    source && [make("h2", null, "Source"), source],
    make("h2", null, "Instructions"),
    code ? listing(code, it.module) : make("p", { class: "muted" }, index.assembly ? "It never ran, and no source of it is shown: its instructions are left out of this page." : "This page was made without instructions."),
  ];
}

function callTable(title, rows, columns, empty) {
  const list = table({ caption: title, columns: callColumns(columns), rows, sort: "Count", empty });
  return [make("h2", null, `${title} (${shown(rows.length)})`), list.element];
}

/** Copies of a function in others, or of others in it, if there are any. */
function inlinedTable(title, rows, other) {
  if (rows.length === 0) return null;
  const columns = [
    ...executedColumns,
    { title: "Function", class: "long", cell: (it) => functionName(other(it)), value: (it) => other(it).name },
    { title: "Source", cell: (it) => place(it.file, it.line), value: (it) => `${it.file?.path}:${it.line}` },
  ];
  const list = table({ caption: title, columns, rows, sort: "Executed", empty: "" });
  return [make("h2", null, `${title} (${shown(rows.length)})`), list.element];
}

function listing({ blocks, edges }, module) {
  const from = blocks.map(() => []);
  for (const it of edges) from[it.from]?.push(it);
  const most = mostOf(blocks.map((it) => it.count));
  return make(
    "div",
    { class: "assembly", role: "region", "aria-label": "Instructions", tabindex: "0" },
    blocks.map((block) =>
      make(
        "section",
        { class: "block", id: `B${block.number}`, "aria-label": `Block ${block.number}` },
        blockHeading(block, from[block.number]),
        instructions(block.code, most, module),
      ),
    ),
  );
}

function blockHeading(block, out) {
  const known = out.every((it) => it.count !== null);
  const all = known ? out.reduce((sum, it) => sum + size(it.count), 0) : null;
  const ways = out.map((it) => {
    const target = it.to < 0 ? "outside" : `block ${it.to}`;
    const to = it.to < 0 ? target : make("button", { type: "button", class: "link", click: () => toBlock(it.to) }, target);
    const often = isNever(it.count) ? span("never", "never") : shown(it.count);
    return span("way", `${it.kind} to `, to, ": ", often, out.length > 1 && size(it.count) > 0 ? span("muted", ` ${share(it.count, all)}`) : null);
  });
  return make(
    "header",
    null,
    span("title", `Block ${block.number}`),
    span(isNever(block.count) ? "never" : "often", isNever(block.count) ? "never ran" : number(block.count, "time")),
    ways,
  );
}

function toBlock(number) {
  const block = document.getElementById(`B${number}`);
  block?.scrollIntoView({ block: "center" });
  block?.classList.add("flash");
  setTimeout(() => block?.classList.remove("flash"), 1200);
}

/** Rows of instructions, each below the line that it belongs to. */
function instructions(code, most, module, withLines = true) {
  const rows = [];
  let last = null;
  for (const it of code) {
    const at = `${it.file}:${it.line}`;
    if (withLines && at !== last && it.line > 0) {
      rows.push(span("from", place(index.files[it.file], it.line)));
    }
    last = at;
    rows.push(
      make(
        "span",
        { class: isNever(it.count) ? "instruction cold" : "instruction", "--heat": heat(it.count, most) },
        span("count", isNever(it.count) ? "never" : shown(it.count)),
        span("address", hex(it.at)),
        span("words", it.words, calledBy(it.words, module)),
      ),
    );
  }
  return make("code", { class: "instructions" }, rows);
}

/** Whom an instruction calls or jumps to, if that is a function's beginning. */
function calledBy(words, module) {
  const target = /^(?:call|j\w+) 0x([0-9a-f]+)$/.exec(words);
  const it = target && index.functionByAddress.get(`${module}:${target[1]}`);
  return it ? ["  ", functionName(it)] : null;
}

function mostOf(counts) {
  return counts.reduce((most, it) => Math.max(most, size(it)), 0);
}

/** From 0 to 1: a tenth as much is half as hot, or so; what ran once beside millions is cold. */
function heat(count, most) {
  const value = size(count);
  if (value <= 0 || most <= 0) return "0";
  const logs = Math.log1p(value) / Math.log1p(most);
  return (logs * logs * Math.sqrt(logs)).toFixed(3);
}

/** The blocks of one line in all functions that have code of it, inlined or not. */
async function lineDetail(file, line, functions, onLine) {
  const MOST_BLOCKS = 60;
  const element = make("div", { class: "detail" });
  let blocks = 0;
  let left = 0;
  for (const id of functions) {
    if (id < 0) {
      element.append(make("p", { class: "muted" }, `And in ${number(-id, "more function")}.`));
      continue;
    }
    const it = index.functions[id];
    const code = await codeOf(it);
    if (!code) {
      element.append(make("p", null, "In ", functionName(it), span("muted", index.assembly ? ": never ran." : ": this page was made without instructions.")));
      continue;
    }
    const mine = code.blocks
      .map((block) => ({ ...block, code: block.code.filter((i) => i.file === file.id && i.line === line) }))
      .filter((block) => block.code.length > 0);
    const most = mostOf(mine.map((block) => block.code[0].count));
    if (functions.length > 1 || file.id !== it.file) element.append(make("p", { class: "in" }, "In ", functionName(it)));
    for (const block of mine) {
      if (blocks >= MOST_BLOCKS) {
        left += 1;
        continue;
      }
      blocks += 1;
      const branch = onLine.find((b) => b.function === it && b.block === block.number);
      element.append(
        make(
          "div",
          { class: "block" },
          make(
            "header",
            null,
            span("title", `Block ${block.number}`),
            span(isNever(block.code[0].count) ? "never" : "often", isNever(block.code[0].count) ? "never ran" : number(block.code[0].count, "time")),
            branch ? ways(branch) : null,
          ),
          instructions(block.code, most, it.module, false),
        ),
      );
    }
  }
  if (left > 0) element.append(make("p", { class: "muted" }, `And ${number(left, "more block")}; the functions show them all.`));
  return element;
}
