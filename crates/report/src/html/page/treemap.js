// Files as areas: as large as what they executed, in the colour of how much of them ran.

/** So many files have an area; others share one. */
const MOST_AREAS = 120;

/** How much wider than high the map is, about. */
const MAP_ASPECT = 3.2;

function treeMap(files) {
  const ran = files.filter((it) => size(it.executed) > 0).sort((a, b) => size(b.executed) - size(a.executed));
  if (ran.length === 0) return null;
  const areas = ran.slice(0, MOST_AREAS).map((file) => ({ file, weight: size(file.executed) }));
  const rest = ran.slice(MOST_AREAS);
  if (rest.length > 0) areas.push({ rest, weight: rest.reduce((sum, it) => sum + size(it.executed), 0) });
  const box = { left: 0, top: 0, width: MAP_ASPECT, height: 1 };
  return make("div", { class: "map", role: "group", "aria-label": "Files by instructions executed; the table of files has them, too" }, squarified(areas, box).map(area));
}

function area({ file, rest, left, top, width, height }) {
  const place = {
    "--left": `${(left / MAP_ASPECT) * 100}%`,
    "--top": `${top * 100}%`,
    "--width": `${(width / MAP_ASPECT) * 100}%`,
    "--height": `${height * 100}%`,
  };
  if (rest) return make("span", { class: "area", ...place, title: `${shown(rest.length)} more files` }, `${shown(rest.length)} more`);
  const words = `${file.path}: ${number(file.executed, "instruction")} executed, ${share(file.executed, index.total.executed)} of all; ${share(file.ran, file.lines)} of its lines ran`;
  return make(
    "a",
    { class: "area", href: fileLink(file), tabindex: "-1", title: words, "aria-label": words, ...place, "--ran-part": `${Math.round(fraction(file.ran, file.lines) * 100)}%` },
    make("span", { class: "title" }, baseName(file.path)),
    make("span", { class: "words" }, share(file.executed, index.total.executed)),
  );
}

/**
 * Where areas lie in a box, the largest first. Rows are laid along the shorter side of what is left; a
 * row is full when one more would make its areas less square.
 */
function squarified(areas, box) {
  const whole = areas.reduce((sum, it) => sum + it.weight, 0);
  const scale = (box.width * box.height) / whole;
  const laid = [];
  let left = { ...box };
  let row = [];
  const side = () => Math.min(left.width, left.height);
  for (const it of areas) {
    const sized = { ...it, size: it.weight * scale };
    if (row.length > 0 && worst([...row, sized], side()) > worst(row, side())) {
      left = lay(row, left, laid);
      row = [];
    }
    row.push(sized);
  }
  lay(row, left, laid);
  return laid;
}

/** How far from square the worst area of a row is. */
function worst(row, side) {
  const sum = row.reduce((all, it) => all + it.size, 0);
  const depth = sum / side;
  return row.reduce((most, it) => Math.max(most, depth / (it.size / depth), it.size / depth / depth), 1);
}

/** Puts a row into a box; what is left of the box. */
function lay(row, { left, top, width, height }, laid) {
  const sum = row.reduce((all, it) => all + it.size, 0);
  const isUpright = width >= height;
  const depth = sum / (isUpright ? height : width);
  let along = isUpright ? top : left;
  for (const it of row) {
    const length = it.size / depth;
    laid.push(isUpright ? { ...it, left, top: along, width: depth, height: length } : { ...it, left: along, top, width: length, height: depth });
    along += length;
  }
  return isUpright
    ? { left: left + depth, top, width: width - depth, height }
    : { left, top: top + depth, width, height: height - depth };
}
