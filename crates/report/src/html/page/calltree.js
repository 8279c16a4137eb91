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
  graphKnown = { total: size(known.total), nodes, entries };
  return graphKnown;
}

async function treeView() {
  const graph = await callGraph();
  const all = { name: "everything", cost: graph.total, own: 0, parent: null };
  all.children = graph.entries
    .map(({ callee, cost }) => new CalledFrom(graph, graph.nodes[callee], cost, all))
    .sort((a, b) => b.cost - a.cost);
  const describe = (it) =>
    `${shown(Math.round(it.cost))} instructions with all that it calls, ${percent(it.cost / Math.max(1, graph.total))} of all; ${shown(Math.round(it.own))} in itself`;
  const rows = graph.nodes.filter((it) => it.it);
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
      "Instructions executed by functions and all that they call. Counts do not say which path led to a call: what a function cost is shared among its callers by how often each of them called it, an estimate. Functions that call each other in a cycle share one cost.",
    ),
    flame(all, describe),
    make("h2", null, "Functions"),
    list.element,
  ];
}
