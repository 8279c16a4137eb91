// A long file as a strip: where it is hot, and where it never ran.

/** Shorter files have none. */
const MINIMAP_LINES = 150;

/** A strip beside a file that is open. It tells nothing that its lines do not: it is for the eye. */
function minimap(source) {
  if (source.rows.length < MINIMAP_LINES) return null;
  const canvas = make("canvas", { class: "minimap", "aria-hidden": "true", width: 12, height: 1 });
  const lineAt = (event) => {
    const box = canvas.getBoundingClientRect();
    const place = Math.floor(((event.clientY - box.top) / box.height) * source.rows.length);
    return source.rows[Math.max(0, Math.min(source.rows.length - 1, place))].number;
  };
  canvas.addEventListener("click", (event) => source.goTo(lineAt(event), true));
  canvas.addEventListener("pointermove", (event) => (canvas.title = `Line ${lineAt(event)}`));
  source.repaint = () => paint(canvas, source);
  new ResizeObserver(source.repaint).observe(canvas);
  return canvas;
}

function paint(canvas, source) {
  const height = canvas.clientHeight;
  if (height === 0) return;
  canvas.height = height;
  const brush = canvas.getContext("2d");
  const colours = getComputedStyle(canvas);
  const rows = source.rows.length;
  const thickness = Math.max(1, height / rows);
  // The hottest last, so that none of them is painted over.
  const lines = [...source.byLine.values()].sort((a, b) => size(a.count) - size(b.count));
  for (const it of lines) {
    const part = isCold(it) ? 1 : Number(heat(it.count, source.most));
    brush.globalAlpha = isCold(it) ? 0.8 : 0.15 + 0.85 * part;
    brush.fillStyle = isCold(it) ? colours.outlineColor : colours.color;
    brush.fillRect(0, (source.places.get(it.line) / rows) * height, canvas.width, thickness);
  }
}
