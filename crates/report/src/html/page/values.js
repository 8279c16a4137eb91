// What was counted by value: a histogram for each thing that was asked for.

async function tallies() {
  const all = await piece("values");
  return all.map(([name, count, most, leftOut, has, rows]) => ({
    name,
    count,
    most,
    leftOut,
    hasSums: (has & 1) !== 0,
    hasCallers: (has & 2) !== 0,
    hasPlaces: (has & 4) !== 0,
    rows: rows.map(([value, count, sum, caller, place, file, line]) => ({
      value,
      count,
      sum: BigInt(sum),
      caller,
      place,
      file: index.files[file] ?? null,
      line,
    })),
  }));
}

/** Numbers and ranges in the order of numbers, all else in that of letters. */
function orderOfValues(rows) {
  const first = (it) => /^-?\d+/.exec(it.value)?.[0];
  const hasNumbers = rows.some((it) => first(it) !== undefined);
  return hasNumbers ? (it) => Number(first(it) ?? -Infinity) : (it) => it.value.toLowerCase();
}

function valueColumns(tally) {
  return [
    tally.hasPlaces && {
      title: "From",
      cell: (it) => (it.file ? place(it.file, it.line) : span("code muted", breakable(it.place))),
      value: (it) => it.place,
    },
    (tally.rows.some((it) => it.value !== "") || !tally.hasCallers) && {
      title: tally.hasPlaces ? "To" : "Value",
      class: "long",
      cell: (it) => (it.value === "" ? span("muted", "all") : span("code", breakable(it.value))),
      value: orderOfValues(tally.rows),
    },
    tally.hasCallers && {
      title: "Caller",
      class: "long",
      cell: (it) => span("code", breakable(it.caller)),
      value: (it) => it.caller.toLowerCase(),
    },
    { title: "Count", right: true, cell: (it) => shown(it.count), value: (it) => size(it.count) },
    {
      title: "Share",
      right: true,
      wide: true,
      cell: (it) => share(it.count, tally.count),
    },
    { title: "", class: "histogram", cell: (it) => meter(fraction(it.count, tally.most), "hot") },
    tally.hasSums && { title: "Sum", right: true, cell: (it) => shownSum(it.sum), value: (it) => it.sum },
  ].filter(Boolean);
}

function shownSum(sum) {
  return sum < 0n ? `−${shown(-sum)}` : shown(sum);
}

function histogram(tally) {
  const rows = number(tally.rows.length + tally.leftOut, "row");
  const leftOut = tally.leftOut > 0 ? `; the ${shown(tally.rows.length)} commonest are here` : "";
  return [
    make("h2", { class: "code" }, breakable(tally.name)),
    make("p", { class: "muted" }, `counted ${number(tally.count, "time")}: ${rows}${leftOut}`),
    table({
      caption: `Values of ${tally.name}`,
      columns: valueColumns(tally),
      rows: tally.rows,
      sort: "Count",
      empty: "It was never reached.",
    }).element,
  ];
}

async function valuesView() {
  const all = await tallies();
  return [heading("Values", "What was counted by value, the commonest first."), all.map(histogram)];
}
