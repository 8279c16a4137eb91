// A source file: counts, time, branches and heat beside each line, blocks and instructions below it.

/** Lines are made in stretches, and in large files only when they come into sight. */
const STRETCH = 200;
const ALL_AT_ONCE = 4000;
const LINE_HEIGHT = 20;
const TAB = 8;

let openFile = null;

async function fileView(path, line) {
  const file = index.fileByPath.get(path);
  if (!file) return [heading("No such file", `No counted code comes from ${path}.`)];
  const known = await piece(`file-${file.id}`);
  const onLines = await branchesOfFile(file);
  const wholeTime = known.times === null ? null : size((await timeData()).nanoseconds);
  openFile = new SourceFile(file, known, onLines, wholeTime);
  const page = make("div", { class: "with-map" }, openFile.element, minimap(openFile));
  return [openFile.heading(), page, () => openFile.goTo(line, false)];
}

/** The lines of a function, where its file's text is here. */
async function sourceOf(it) {
  const file = index.files[it.file];
  if (!file?.hasText || it.line === 0) return null;
  const known = await piece(`file-${file.id}`);
  const source = new SourceFile(file, known, await branchesOfFile(file), null, it);
  return source.rows.length > 0 ? source.element : null;
}

class SourceFile {
  /** All of a file, or the lines of a function of it. */
  constructor(file, known, onLines, wholeTime, only = null) {
    this.file = file;
    this.onLines = onLines;
    this.wholeTime = wholeTime;
    const timed = known.times ?? [];
    this.times = new Map(timed.map(([line, samples, time, each]) => [line, { samples, time: size(time), each }]));
    this.outcomes = new Map(known.outcomes.map(([line, words, isPartial]) => [line, { words, isPartial: isPartial === 1 }]));
    this.byLine = new Map();
    let line = 0;
    const lines = known.lines.map((distance) => (line += distance));
    lines.forEach((line, i) => {
      const functions = known.functions[i];
      this.byLine.set(line, {
        line,
        count: known.counts[i],
        executed: known.executed[i],
        functions: Array.isArray(functions) ? functions : [functions],
      });
    });
    // Without its text, only the lines that hold code are known.
    this.rows =
      known.text === null
        ? lines.map((number) => ({ number, text: "" }))
        : known.text.split("\n").map((text, i) => ({ number: i + 1, text }));
    this.language = languageOf(file.path);
    this.inside = insideComments(this.rows.map((it) => it.text), this.language);
    if (only) this.narrow(only);
    this.most = mostOf([...this.byLine.values()].map((it) => it.count));
    this.places = new Map(this.rows.map((it, i) => [it.number, i]));
    this.current = null;
    this.stretches = [];
    this.element = this.made();
  }

  /** To the lines from a function's beginning to its last, or to the next function. */
  narrow(it) {
    // What is called after it (closures) is inside.
    const isInside = (other) => [`${it.name}::`, `${it.name}.`].some((start) => other.name.startsWith(start));
    const follows = (other) => other.file === it.file && other.line > it.line && !isInside(other);
    const beginnings = index.functions.filter(follows).map((other) => other.line);
    const end = beginnings.reduce((least, line) => Math.min(least, line), Infinity);
    const isIts = (line) => line >= it.line && line < end;
    const last = [...this.byLine.values()].reduce((most, { line, functions }) => (isIts(line) && functions.includes(it.id) ? Math.max(most, line) : most), 0);
    const isKept = (line) => line >= it.line && line <= last;
    this.inside = this.inside.filter((_, place) => isKept(this.rows[place].number));
    this.rows = this.rows.filter((row) => isKept(row.number));
    this.byLine = new Map([...this.byLine].filter(([line]) => isKept(line)));
  }

  heading() {
    const { file } = this;
    const slash = file.path.lastIndexOf("/") + 1;
    const functions = index.functions.filter((it) => it.file === file.id).sort((a, b) => a.line - b.line);
    const jump = (words, key, next) =>
      make("button", { type: "button", title: `Key: ${key}`, click: () => this.next(next) }, words);
    return make(
      "div",
      { class: "heading" },
      make("h1", { tabindex: "-1", class: "code" }, span("muted", breakable(file.path.slice(0, slash))), file.path.slice(slash)),
      make(
        "p",
        { class: "muted" },
        `${shown(file.ran)} of ${number(file.lines, "line")} with code ran (${share(file.ran, file.lines)}); `,
        `${number(file.executed, "instruction")} executed, ${share(file.executed, index.total.executed)} of all.`,
        this.wholeTime === null ? null : ` ${this.timeWords()}`,
        file.hasText ? null : file.isOfALibrary ? " It belongs to a library; its text is left out." : " Its text was not found when this page was made.",
      ),
      make(
        "div",
        { class: "jumps" },
        jump("Next never run", "n", isCold),
        jump("Next hot", "h", (it) => this.isHot(it)),
        jump("Next partial branch", "b", (it) => this.isPartial(it)),
        functions.length > 0 ? this.functionMenu(functions) : null,
      ),
    );
  }

  timeWords() {
    const time = [...this.times.values()].reduce((sum, it) => sum + it.time, 0);
    return `Its lines took ${duration(time)}, ${smallShare(time, this.wholeTime)} of the time in the program.`;
  }

  functionMenu(functions) {
    const go = (event) => {
      const it = index.functions[event.target.value];
      if (it) this.goTo(it.line, true);
      event.target.value = "";
    };
    return make(
      "select",
      { "aria-label": "Go to a function", change: go },
      make("option", { value: "" }, `${number(functions.length, "function")} …`),
      functions.map((it) => make("option", { value: it.id }, `${it.name.slice(0, 80)} (${shown(it.executed)})`)),
    );
  }

  made() {
    const countWidth = [...this.byLine.values()].reduce((most, it) => Math.max(most, words(it).length), 5);
    const last = this.rows.at(-1)?.number ?? 0;
    const element = make("div", {
      class: "source",
      "--count-width": `${countWidth + 2}ch`,
      "--time-width": this.wholeTime === null ? "0ch" : "7ch",
      "--number-width": `${String(last).length + 2}ch`,
      "--longest": `${this.rows.reduce((most, it) => Math.max(most, width(it.text)), 0) + 2}ch`,
    });
    const isLarge = this.rows.length > ALL_AT_ONCE;
    for (let from = 0; from < this.rows.length; from += STRETCH) {
      const lines = Math.min(STRETCH, this.rows.length - from);
      const box = make("div", { class: "stretch", "--height": `${lines * LINE_HEIGHT}px` });
      const stretch = { box, from, lines, isFilled: false };
      this.stretches.push(stretch);
      element.append(box);
      if (isLarge) {
        box.classList.add("empty");
        whenSeen(box, (observer) => {
          observer.disconnect();
          this.fill(stretch);
        });
      } else this.fill(stretch);
    }
    if (this.rows.length === 0) element.append(make("p", { class: "muted" }, "The file is empty."));
    return make("div", { class: "frame", role: "region", "aria-label": "Source", tabindex: "0" }, element);
  }

  fill(stretch) {
    if (stretch.isFilled) return;
    stretch.isFilled = true;
    const { box, from, lines } = stretch;
    for (let i = from; i < from + lines; i++) box.append(this.row(i));
    box.classList.remove("empty");
  }

  row(place) {
    const { number, text } = this.rows[place];
    const it = this.byLine.get(number);
    const kind = !it ? "plain" : isCold(it) ? "cold" : it.count === null ? "unknown" : "ran";
    const code = make("code", null, highlighted(text, this.inside[place], this.language));
    const link = make("a", { class: "number", href: fileLink(this.file, number), "aria-label": `Line ${number}` }, String(number));
    return make(
      "div",
      { class: `line ${kind}`, id: `L${number}`, "--heat": it ? heat(it.count, this.most) : null },
      span("gutter", this.count(it), this.time(number), link),
      code,
      this.outcome(number),
    );
  }

  count(it) {
    if (!it) return span("count");
    const often = isCold(it) ? "never ran" : it.count === null ? "was not counted" : `ran ${number(it.count, "time")}`;
    return make(
      "button",
      {
        type: "button",
        class: "count",
        "aria-expanded": "false",
        "aria-label": `Line ${it.line} ${often}; show its blocks`,
        title: `${number(it.executed, "instruction")} executed, ${share(it.executed, index.total.executed)} of all`,
        click: () => this.toggle(it.line),
      },
      words(it),
    );
  }

  /** The line's share of the time in the program, where there are samples. */
  time(line) {
    if (this.wholeTime === null) return null;
    const it = this.times.get(line);
    if (!it) return span("time");
    const each = it.each === "" ? "" : `, ${it.each} each time`;
    const title = `${duration(it.time)}${each} (${number(it.samples, "sample")})`;
    return make("span", { class: "time", title }, smallShare(it.time, this.wholeTime));
  }

  /** What the branches of a line say of its condition. */
  outcome(number) {
    const it = this.outcomes.get(number);
    if (!it) return null;
    // Only what never happened has the colour of that.
    const kind = it.words === "never" ? "outcome not" : it.isPartial ? "outcome partial" : "outcome";
    return span(kind, it.words);
  }

  async toggle(number) {
    const row = document.getElementById(`L${number}`);
    const button = row?.querySelector("button.count");
    if (!button) return;
    const isOpen = button.getAttribute("aria-expanded") === "true";
    button.setAttribute("aria-expanded", String(!isOpen));
    if (isOpen) {
      row.nextElementSibling?.classList.contains("detail") && row.nextElementSibling.remove();
      return;
    }
    const it = this.byLine.get(number);
    row.after(await lineDetail(this.file, number, it.functions, this.onLines.get(number) ?? []));
  }

  isHot(it) {
    return size(it.count) >= Math.max(1, this.most / 4);
  }

  isPartial(it) {
    return this.outcomes.get(it.line)?.isPartial ?? false;
  }

  /** To the next line that has something; after the last one, to the first. */
  next(has, step = 1) {
    const lines = [...this.byLine.values()].filter(has).map((it) => it.line);
    if (step < 0) lines.reverse();
    if (lines.length === 0) return announce("No such line.");
    const from = this.current ?? (step > 0 ? 0 : Infinity);
    this.goTo(lines.find((it) => (it - from) * step > 0) ?? lines[0], true);
  }

  goTo(line, remember) {
    if (!line) return;
    const place = this.places.get(line) ?? this.nearest(line);
    if (place === undefined) return;
    const { number } = this.rows[place];
    this.fill(this.stretches[Math.floor(place / STRETCH)]);
    document.querySelector(".line.current")?.classList.remove("current");
    const row = document.getElementById(`L${number}`);
    row.classList.add("current");
    row.scrollIntoView({ block: "center" });
    this.current = number;
    const it = this.byLine.get(number);
    announce(it ? `Line ${number}: ${words(it)}` : `Line ${number}`);
    if (remember) history.replaceState(null, "", fileLink(this.file, number));
  }

  /** A function may begin on a line that holds no code, in a file whose text is not here. */
  nearest(line) {
    const place = this.rows.findIndex((it) => it.number >= line);
    return place < 0 ? undefined : place;
  }
}

const isCold = (it) => isNever(it.count) && isNever(it.executed);

function words(it) {
  return isCold(it) ? "never" : shown(it.count);
}

/** A share of the time; not 0% unless it is that. */
function smallShare(part, whole) {
  return part > 0 && part / whole < 0.001 ? "<0.1%" : percent(part / Math.max(1, whole));
}

/** How many columns a line takes, tabs expanded. */
function width(text) {
  if (!text.includes("\t")) return text.length;
  let column = 0;
  for (const c of text) column = c === "\t" ? column + TAB - (column % TAB) : column + 1;
  return column;
}
