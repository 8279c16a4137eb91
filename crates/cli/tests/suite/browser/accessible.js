// What keeps someone from using the page: a list of sentences, empty if nothing does.
(() => {
  const wrong = [];
  const say = (what, element) => wrong.push(`${what}: ${element.outerHTML.slice(0, 120)}`);
  const isShown = (it) => it.checkVisibility({ checkVisibilityCSS: true }) && it.getClientRects().length > 0;

  for (const [what, most] of [["main", 1], ["h1", 1], ["nav", 1], ["title", 1]]) {
    const many = document.querySelectorAll(what).length;
    if (many !== most) wrong.push(`${many} of ${what}`);
  }
  if (!document.documentElement.lang) wrong.push("no language");

  const ids = [...document.querySelectorAll("[id]")].map((it) => it.id);
  const twice = ids.filter((id, place) => ids.indexOf(id) !== place);
  if (twice.length > 0) wrong.push(`used twice: ${twice}`);

  let level = 0;
  for (const it of document.querySelectorAll("main h1, main h2, main h3, main h4")) {
    const next = Number(it.tagName[1]);
    if (next > level + 1) say(`from heading ${level} to ${next}`, it);
    level = next;
  }

  const nameOf = (it) =>
    it.getAttribute("aria-label") ||
    it.textContent.trim() ||
    [...(it.labels ?? [])].map((label) => label.textContent).join(" ").trim();
  for (const it of document.querySelectorAll("a, button, input, select")) {
    if (isShown(it) && !nameOf(it)) say("no name", it);
  }
  for (const it of document.querySelectorAll("table")) {
    if (!it.caption || it.querySelectorAll("th[scope=col]").length === 0) say("no caption or heads", it);
  }
  // What scrolls must be reachable by keys.
  for (const it of document.querySelectorAll("main *")) {
    const style = getComputedStyle(it);
    const scrolls = /auto|scroll/.test(style.overflowX) && it.scrollWidth > it.clientWidth + 1;
    if (scrolls && it.tabIndex < 0 && !it.querySelector("a, button")) say("scrolls without keys", it);
  }

  // Contrast of text, as WCAG 2 counts it. The canvas knows every way to write a colour.
  const canvas = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
  const over = (colour, back) => {
    canvas.fillStyle = `rgb(${back.join(" ")})`;
    canvas.fillRect(0, 0, 1, 1);
    canvas.fillStyle = colour;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
  };
  const backs = new Map();
  const backOf = (it) => {
    if (!it) return over("Canvas", [255, 255, 255]);
    if (!backs.has(it)) backs.set(it, over(getComputedStyle(it).backgroundColor, backOf(it.parentElement)));
    return backs.get(it);
  };
  const light = (colour) => {
    const [r, g, b] = colour.map((it) => {
      const part = it / 255;
      return part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
    });
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  let looked = 0;
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const it = text.parentElement;
    if (!text.data.trim() || /^(SCRIPT|STYLE|NOSCRIPT|OPTION)$/.test(it.tagName) || !isShown(it)) continue;
    const back = backOf(it);
    const [a, b] = [light(over(getComputedStyle(it).color, back)), light(back)];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) say(`contrast ${contrast.toFixed(2)} of “${text.data.slice(0, 30)}”`, it);
    if (++looked > 3000) break;
  }
  if (looked < 10) wrong.push("hardly any text to look at");

  if (document.documentElement.scrollWidth > innerWidth) {
    wrong.push(`wider than the window: ${document.documentElement.scrollWidth} of ${innerWidth}`);
  }
  return wrong.slice(0, 20);
})()
