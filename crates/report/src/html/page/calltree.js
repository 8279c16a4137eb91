// What the program executed, as a tree of calls.

/**
 * A function at a place in the tree. What its calls cost from here is its share of what they cost in
 * all, so only those that are looked at are made.
 */
class CalledFrom {
  constructor(graph, node, cost, parent) {
    this.graph = graph;
    this.node = node;
    this.cost = cost;
    this.parent = parent;
    this.it = node.it;
    this.name = node.it?.name ?? "a function that is not shown";
    this.part = node.inclusive > 0 ? cost / node.inclusive : 0;
    this.own = node.own * this.part;
  }

  get children() {
    this.made ??= this.node.calls
      .map(({ callee, cost }) => new CalledFrom(this.graph, this.graph.nodes[callee], cost * this.part, this))
      .sort((a, b) => b.cost - a.cost);
    return this.made;
  }
}

let graphKnown = null;

/** The call graph: what each function executed itself and with all that it calls, and its calls. */
async function callGraph() {
  if (graphKnown) return graphKnown;
  const known = await piece("graph");
  const nodes = known.nodes.map(([place, own, inclusive]) => ({
    it: place < 0 ? null : index.functions[place],
    own: size(own),
    inclusive: size(inclusive),
    calls: [],
  }));
  const entries = [];
  for (const [caller, callee, cost] of known.edges) (nodes[caller]?.calls ?? entries).push({ callee, cost: size(cost) });
  graphKnown = { total: size(known.total), nodes, entries, tree: known.tree && exactTree(known.tree, nodes) };
  return graphKnown;
}

/** What each calling context cost, where calls were followed: the contexts that nobody called. */
function exactTree(rows, nodes) {
  const roots = [];
  const places = [];
  for (const [caller, node, cost, own] of rows) {
    const it = nodes[node]?.it ?? null;
    const name = it?.name ?? "a function that is not shown";
    const place = { it, name, cost: size(cost), own: size(own), parent: places[caller] ?? null, children: [] };
    places.push(place);
    (place.parent?.children ?? roots).push(place);
  }
  for (const it of places) it.children.sort((a, b) => b.cost - a.cost);
  return roots;
}

const FOLLOWED =
  "Instructions executed by functions and all that they call: exact, because this run followed its calls. What a function executed when it was called again from itself is a part of its first call.";

const ESTIMATED =
  "Instructions executed by functions and all that they call. Counts do not say which path led to a call: what a function cost is shared among its callers by how often each of them called it, an estimate (run --calls finds it out exactly). Functions that call each other in a cycle share one cost.";

async function treeView() {
  const graph = await callGraph();
  const all = { name: "everything", cost: graph.total, own: 0, parent: null };
  const entries = () => graph.entries.map(({ callee, cost }) => new CalledFrom(graph, graph.nodes[callee], cost, all));
  all.children = (graph.tree ?? entries()).sort((a, b) => b.cost - a.cost);
  for (const it of all.children) it.parent = all;
  const describe = (it) =>
    `${shown(Math.round(it.cost))} instructions with all that it calls, ${percent(it.cost / Math.max(1, graph.total))} of all; ${shown(Math.round(it.own))} in itself`;
  // Of those that call each other in a cycle, and so share one cost, the hottest come first.
  const rows = graph.nodes.filter((it) => it.it).sort((a, b) => b.own - a.own);
  const list = table({
    caption: "Functions with all that they call",
    columns: [
      { title: "Function", class: "long", cell: (row) => functionName(row.it), value: (row) => row.it.name.toLowerCase() },
      { title: "With callees", right: true, cell: (row) => shown(row.inclusive), value: (row) => row.inclusive },
      {
        title: "Share",
        right: true,
        class: "share",
        cell: (row) => [span("number", share(row.inclusive, graph.total)), meter(fraction(row.inclusive, graph.total), "hot")],
      },
      { title: "In itself", right: true, cell: (row) => shown(row.own), value: (row) => row.own },
      { title: "Calls", right: true, wide: true, cell: (row) => shown(row.it.calls), value: (row) => size(row.it.calls) },
    ],
    rows,
    sort: "With callees",
    empty: "No function ran.",
  });
  return [
    heading(
      "Call tree",
      graph.tree ? FOLLOWED : ESTIMATED,
    ),
    flame(all, describe),
    make("h2", null, "Functions"),
    list.element,
  ];
}
