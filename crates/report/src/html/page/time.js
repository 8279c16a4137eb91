// Where the time went: a flame view of the call tree, and functions by their time.

let timeKnown = null;

/** What is known of time: totals, functions, and the call tree with the samples of whole branches. */
async function timeData() {
  if (timeKnown) return timeKnown;
  const known = await piece("time");
  const nodes = known.nodes.map(([caller, name, own]) => ({
    caller,
    name: known.names[name],
    own,
    cost: own,
    children: [],
  }));
  const all = { name: "all threads", own: 0, cost: known.samples, parent: null, children: [] };
  for (const it of [...nodes].reverse()) {
    it.parent = nodes[it.caller] ?? all;
    it.parent.children.push(it);
    if (it.parent !== all) it.parent.cost += it.cost;
  }
  for (const it of [all, ...nodes]) it.children.sort((a, b) => b.cost - a.cost);
  const functions = known.functions.map(([place, name, samples, own, inclusive, each]) => ({
    it: place < 0 ? null : index.functions[place],
    name,
    samples,
    own: size(own),
    inclusive: size(inclusive),
    each,
  }));
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
    flame(time.all, (it) => `${number(it.cost, "sample")}, ${percent(it.cost / Math.max(1, time.samples))} of the time`),
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
