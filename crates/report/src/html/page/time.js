// Where the time went: a flame view of the call tree, and functions by their time.

let timeKnown = null;

/** What is known of time: totals, functions, and the call tree with the samples of whole branches. */
async function timeData() {
  if (timeKnown) return timeKnown;
  const known = await piece("time");
  const nodes = known.nodes.map(([caller, name, own], id) => ({
    id,
    caller,
    name: known.names[name],
    own,
    samples: own,
    children: [],
  }));
  for (const it of [...nodes].reverse()) {
    if (it.caller < 0) continue;
    nodes[it.caller].samples += it.samples;
    nodes[it.caller].children.push(it);
  }
  for (const it of nodes) it.children.sort((a, b) => b.samples - a.samples);
  const functions = known.functions.map(([place, name, samples, own, inclusive, each]) => ({
    it: place < 0 ? null : index.functions[place],
    name,
    samples,
    own: size(own),
    inclusive: size(inclusive),
    each,
  }));
  const roots = nodes.filter((it) => it.caller < 0);
  const all = { id: -1, name: "all threads", own: 0, samples: known.samples, children: roots };
  timeKnown = { ...known, functions, all };
  return timeKnown;
}

/** Nanoseconds with three digits and the unit that fits. */
function duration(nanoseconds) {
  const [unit, most] = [["s", 1e9], ["ms", 1e6], ["us", 1e3], ["ns", 1]].find((it) => nanoseconds >= it[1]) ?? ["ns", 1];
  const value = nanoseconds / most;
  const digits = unit === "ns" ? 0 : value < 9.995 ? 2 : value < 99.95 ? 1 : 0;
  return `${value.toFixed(digits)} ${unit}`;
}

async function timeView() {
  const time = await timeData();
  const how = time.counted ? "while the program was counted" : "at the program's own speed";
  return [
    heading("Time", `${number(time.samples, "sample")}, ${how}`),
    make(
      "div",
      { class: "cards" },
      card("In the program", duration(size(time.nanoseconds)), "sampled; shown below"),
      card("In the kernel", duration(size(time.kernel)), "system calls, page faults"),
      card("Waiting", duration(size(time.waiting)), "off the processor, all threads"),
    ),
    make("h2", null, "Call tree"),
    flame(time),
    make("h2", null, "Functions"),
    timeTable(time),
  ];
}

function timeTable(time) {
  const whole = size(time.nanoseconds);
  return table({
    caption: "Functions by time",
    sort: "Time",
    empty: "No sample was taken in the program.",
    rows: time.functions,
    columns: [
      {
        title: "Function",
        class: "long",
        cell: (row) => (row.it ? functionName(row.it) : breakable(row.name)),
        value: (row) => row.name.toLowerCase(),
      },
      { title: "Time", right: true, cell: (row) => duration(row.own), value: (row) => row.own },
      {
        title: "Share",
        right: true,
        class: "share",
        cell: (row) => [span("number", percent(row.own / whole)), meter(row.own / whole, "hot")],
      },
      { title: "With callees", right: true, cell: (row) => duration(row.inclusive), value: (row) => row.inclusive },
      { title: "Each call", right: true, wide: true, cell: (row) => row.each || span("muted", "–") },
      {
        title: "Executed",
        right: true,
        wide: true,
        cell: (row) => (row.it ? shown(row.it.executed) : span("muted", "–")),
        value: (row) => (row.it ? size(row.it.executed) : -1),
      },
    ],
  }).element;
}

/** What is narrower is not drawn: a share of the width. */
const NARROWEST_FRAME = 0.002;

/** How many levels are drawn; deeper ones are found by choosing a frame. */
const DEEPEST_FRAME = 32;

/** The call tree as frames as wide as their time, callers above. Choosing one makes it as wide as all. */
function flame(time) {
  const picture = make("div", { class: "flame" });
  const words = make("p", { class: "muted", role: "status" });

  function draw(root) {
    const path = [];
    for (let at = root; at; at = at.id < 0 ? null : at.caller < 0 ? time.all : time.nodesById.get(at.caller)) path.unshift(at);
    const frames = path.map((it, depth) => frame(it, 0, 1, depth, it !== root));
    const waiting = [[root, 0, 1, path.length - 1]];
    let rows = path.length;
    while (waiting.length > 0) {
      const [it, left, width, depth] = waiting.pop();
      let next = left;
      for (const child of it.children) {
        const part = (width * child.samples) / Math.max(1, it.samples);
        if (part >= NARROWEST_FRAME && depth - path.length < DEEPEST_FRAME) {
          frames.push(frame(child, next, part, depth + 1, false));
          waiting.push([child, next, part, depth + 1]);
          rows = Math.max(rows, depth + 2);
        }
        next += part;
      }
    }
    picture.style.setProperty("--rows", rows);
    picture.replaceChildren(...frames);
    const more = root.id < 0 ? "Choose a frame to see it as wide as the page." : "Choose a frame above to go back.";
    words.textContent = `${root.name}: ${number(root.samples, "sample")}, ${percent(root.samples / Math.max(1, time.samples))} of the time. ${more}`;
  }

  function frame(it, left, width, depth, isAround) {
    const part = percent(it.samples / Math.max(1, time.samples));
    const label = `${it.name}: ${part}, ${percent(it.own / Math.max(1, time.samples))} in itself`;
    const heat = Math.min(1, it.own / Math.max(1, time.samples) / 0.5);
    return make(
      "button",
      {
        type: "button",
        class: isAround ? "call around" : "call",
        title: label,
        "aria-label": label,
        "--left": `${left * 100}%`,
        "--width": `${width * 100}%`,
        "--row": depth,
        "--heat": `${Math.round(heat * 45)}%`,
        click: () => {
          draw(it);
          picture.querySelector(`[style*="--row: ${depth};"]`)?.focus();
        },
      },
      it.name,
    );
  }

  time.nodesById ??= new Map(nodesBelow(time.all).map((it) => [it.id, it]));
  draw(time.all);
  return [picture, words];
}

function nodesBelow(root) {
  const all = [];
  const waiting = [...root.children];
  while (waiting.length > 0) {
    const it = waiting.pop();
    all.push(it);
    waiting.push(...it.children);
  }
  return all;
}

