// A tree as frames as wide as what they cost, callers above.

/** What is narrower is not drawn: a share of the width. */
const NARROWEST_FRAME = 0.002;

/** How many levels are drawn; deeper ones are found by choosing a frame. */
const DEEPEST_FRAME = 32;

/**
 * The picture of a tree, and below it what is said of the frame that is as wide as the page. A node has
 * `name`, `cost`, `own`, `parent` and `children`; `describe(node)` says what it cost. Choosing a frame
 * makes it as wide as all.
 */
function flame(all, describe) {
  const picture = make("div", { class: "flame" });
  const words = make("p", { class: "muted", role: "status" });
  const whole = Math.max(1, all.cost);

  function draw(root) {
    const path = [];
    for (let at = root; at; at = at.parent) path.unshift(at);
    const frames = path.map((it, depth) => frame(it, 0, 1, depth, it !== root));
    const waiting = [[root, 0, 1, path.length - 1]];
    let rows = path.length;
    while (waiting.length > 0) {
      const [it, left, width, depth] = waiting.pop();
      if (depth - path.length >= DEEPEST_FRAME) continue;
      let next = left;
      for (const child of it.children) {
        const part = (width * child.cost) / Math.max(1, it.cost);
        if (part >= NARROWEST_FRAME) {
          frames.push(frame(child, next, part, depth + 1, false));
          waiting.push([child, next, part, depth + 1]);
          rows = Math.max(rows, depth + 2);
        }
        next += part;
      }
    }
    picture.style.setProperty("--rows", rows);
    picture.replaceChildren(...frames);
    const more = root === all ? "Choose a frame to see it as wide as the page." : "Choose a frame above to go back.";
    words.replaceChildren(root.it ? functionName(root.it) : root.name, `: ${describe(root)}. ${more}`);
  }

  function frame(it, left, width, depth, isAround) {
    const label = `${it.name}: ${percent(it.cost / whole)}, ${percent(it.own / whole)} in itself`;
    const heat = Math.min(1, it.own / whole / 0.5);
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

  draw(all);
  return [picture, words];
}
