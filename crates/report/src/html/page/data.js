// What is known of the program. It comes in packed pieces (see `pack.rs`), each unpacked when it is
// first asked for.

const pieces = new Map();

/** A piece by its name, as a promise. */
function piece(name) {
  if (!pieces.has(name)) pieces.set(name, unpacked(name));
  return pieces.get(name);
}

async function unpacked(name) {
  const element = document.getElementById(name);
  if (!element) throw new Error(`the page has no part called ${name}: it is not whole`);
  const letters = atob(element.textContent);
  element.remove();
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/** The index, with names for its columns, and with the ways to find things in it. */
let index = null;

async function openIndex() {
  const known = await piece("index");
  index = {
    ...known,
    total: tally(known.total),
    modules: known.modules.map((it) => ({ ...it, tally: tally(it.tally), name: baseName(it.path) })),
    files: known.files.map((it, id) => ({
      id,
      path: it[0],
      executed: it[1],
      instructions: it[2],
      neverRan: it[3],
      lines: it[4],
      ran: it[5],
      hasText: (it[6] & 1) !== 0,
      isOfALibrary: (it[6] & 2) !== 0,
      never: pairs(it[7]),
    })),
    functions: known.functions.map((it, id) => ({
      id,
      name: it[0],
      module: it[1],
      file: it[2],
      line: it[3],
      calls: it[4],
      executed: it[5],
      instructions: it[6],
      neverRan: it[7],
      address: it[8],
      blocks: it[9],
      code: it[10],
      isOwn: it[11] === 1,
    })),
    hotLines: known.hot_lines.map(([file, line, count, executed, text]) => ({ file, line, count, executed, text })),
    refused: known.refused.map((it) => ({
      module: it[0],
      subject: it[1],
      file: it[2],
      line: it[3],
      reason: it[4],
    })),
  };
  for (const it of index.hotLines) it.file = index.files[it.file];
  index.fileByPath = new Map(index.files.map((it) => [it.path, it]));
  index.functionByAddress = new Map(index.functions.map((it) => [`${it.module}:${it.address}`, it]));
  index.functionByKey = new Map();
  const taken = new Set();
  for (const it of index.functions) {
    it.key = taken.has(it.name) ? `${it.name}@${it.module}:${it.address}` : it.name;
    taken.add(it.name);
    index.functionByKey.set(it.key, it);
  }
}

function tally([executed, instructions, neverRan]) {
  return { executed, instructions, neverRan };
}

function pairs(flat) {
  const all = [];
  for (let i = 0; i < flat.length; i += 2) all.push([flat[i], flat[i + 1]]);
  return all;
}

/** What functions did: a lookup of the events of one, in the order of `index.events`, and notes. */
async function eventAmounts() {
  const known = await piece("events");
  const rows = new Map(known.rows.map(([id, ...amounts]) => [id, amounts]));
  return { of: (it, place) => rows.get(it.id)?.[place] ?? (rows.has(it.id) ? null : 0), notes: known.notes };
}

/** All calls in functions that ran. */
async function calls() {
  const all = await piece("calls");
  return all.map((it) => ({
    caller: index.functions[it[0]],
    file: index.files[it[1]] ?? null,
    line: it[2],
    address: it[3],
    callee: typeof it[4] === "number" ? index.functions[it[4]] : null,
    target: it[4],
    count: it[5],
    isJump: it[6] === 1,
  }));
}

/** All places where a function was inlined into one that ran. */
async function inlinedCalls() {
  const all = await piece("inlined");
  return all.map(([callee, caller, file, line, executed]) => ({
    callee: index.functions[callee],
    caller: index.functions[caller],
    file: index.files[file] ?? null,
    line,
    executed,
  }));
}

/** All branches in functions that ran. */
async function branches() {
  const all = await piece("branches");
  return all.map((it) => ({
    function: index.functions[it[0]],
    file: index.files[it[1]] ?? null,
    line: it[2],
    address: it[3],
    block: it[4],
    ways: pairs(it[5]).map(([kind, count]) => ({ kind, count })),
  }));
}

/** The branches of one file, by line. */
async function branchesOfFile(file) {
  const byLine = new Map();
  for (const it of await branches()) {
    if (it.file !== file) continue;
    if (!byLine.has(it.line)) byLine.set(it.line, []);
    byLine.get(it.line).push(it);
  }
  return byLine;
}

/** A function's blocks, with their instructions, and its edges; none, if the page has no code of it. */
async function codeOf(it) {
  if (it.code < 0) return null;
  const found = (await piece(`code-${it.code}`)).find((row) => row[0] === it.id);
  const [, packed, edges, text] = found;
  const words = text.split("\n");
  let next = 0;
  let lastLine = 0;
  const blocks = packed.map(([address, counts, instructions, flat, lengths], number) => {
    const count = countOf(counts);
    const runs = [];
    for (let i = 0; i < flat.length; i += 3) {
      lastLine += flat[i + 1];
      runs.push({ file: flat[i], line: lastLine, length: flat[i + 2] });
    }
    const line = linesOf(runs, instructions);
    let at = BigInt(`0x${address}`);
    const code = Array.from(lengths, (length, place) => {
      const instruction = { at, words: words[next++], count: count(place), ...line(place) };
      at += BigInt(typeof length === "string" ? parseInt(length, 16) : length);
      return instruction;
    });
    return { number, address, count: count(0), code };
  });
  return { blocks, edges: edges.map(([from, to, kind, count]) => ({ from, to, kind, count })) };
}

/** How often the instruction with a number ran. */
function countOf(counts) {
  if (!Array.isArray(counts)) return () => counts;
  const stretches = pairs(counts);
  return (place) => {
    for (const [length, count] of stretches) {
      if (place < length) return count;
      place -= length;
    }
    return null;
  };
}

/** File and line of the instruction with a number. Those of no line stand at the front. */
function linesOf(runs, instructions) {
  const front = Math.max(0, instructions - runs.reduce((sum, it) => sum + it.length, 0));
  return (place) => {
    place -= front;
    for (const { file, line, length } of place < 0 ? [] : runs) {
      if (place < length) return { file, line };
      place -= length;
    }
    return { file: -1, line: 0 };
  };
}

// Counts are numbers; digits, where a number would be rounded; `>` and digits for "at least";
// `<` for "at most"; `?` for a line whose code does not tell; null for what was not counted.

function isNever(count) {
  return count === 0;
}

/** For comparing and for colours, where rounding does no harm. */
function size(count) {
  if (count === null || count === "?") return -1;
  return typeof count === "number" ? count : Number(count.replace(/[<>]/, ""));
}

function shown(count) {
  if (count === null) return "–";
  const [, sign, digits] = /^([<>]?)(.*)$/.exec(count);
  const grouped = digits.replace(/\B(?=(\d{3})+$)/g, ",");
  return { "": "", "<": "≤ ", ">": "≥ " }[sign] + grouped;
}

/** A share is as sure as both its numbers are. */
function share(part, whole) {
  const isSure = (it) => it !== null && it !== "?" && !String(it).startsWith(">");
  if (!isSure(part) || !isSure(whole) || size(whole) === 0) return "–";
  return percent(size(part) / size(whole));
}

function percent(fraction) {
  return `${(Math.round(fraction * 1000) / 10).toFixed(1)}%`;
}

function fraction(part, whole) {
  return size(whole) > 0 ? Math.max(0, size(part)) / size(whole) : 0;
}

/** `1 call`, `2 calls`. */
function number(count, one, many = `${one}s`) {
  return `${shown(count)} ${count === 1 ? one : many}`;
}

function baseName(path) {
  return path.slice(path.lastIndexOf("/") + 1);
}

/** An address as the linker wrote it. */
function hex(address) {
  return `0x${address.toString(16)}`;
}
