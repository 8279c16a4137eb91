// Elements. Everything that came from the program goes into the page as text, never as markup.

/** An element: `make("a", { class: "x", href: "#/" }, "text", child)`. */
function make(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") element.addEventListener(name, value);
    else if (name.startsWith("--")) element.style.setProperty(name, value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((it) => it !== null && it !== undefined));
  return element;
}

const span = (name, ...children) => make("span", { class: name }, ...children);

/** How much of something, as a bar; the number stands beside it. */
function meter(fraction, kind) {
  const part = Math.max(0, Math.min(1, fraction));
  const fill = make("span", { class: "fill", "--part": `${part * 100}%` });
  return make("span", { class: `meter ${kind}`, "aria-hidden": "true" }, fill);
}

function pathAsLink(path) {
  return path.split("/").map(encodeURIComponent).join("/");
}

function fileLink(file, line = 0) {
  return `#/file/${pathAsLink(file.path)}${line > 0 ? `:${line}` : ""}`;
}

function functionLink(it) {
  return `#/function/${encodeURIComponent(it.key)}`;
}

/** A function's name as a link, its parts where a long one may be broken. */
function functionName(it) {
  return make("a", { href: functionLink(it), class: "name" }, breakable(it.name));
}

/** `max.c:12` as a link; where it is, if the mouse asks. */
function place(file, line) {
  if (!file) return span("muted", "–");
  const text = line > 0 ? `${baseName(file.path)}:${line}` : baseName(file.path);
  return make("a", { href: fileLink(file, line), class: "place", title: file.path }, text);
}

/** Long names may break behind `::`, `/`, `_` and `,`. */
function breakable(text) {
  const parts = text.split(/(?<=::|\/|_|,)/);
  return parts.flatMap((part, i) => (i === 0 ? [part] : [make("wbr"), part]));
}

/** What the reader chose in this view, as the address says. */
function chosenHere() {
  return new URLSearchParams(location.hash.split("?")[1] ?? "");
}

/** Keeps a choice in the address, unless it is what the view begins with. */
function keepChosen(name, value, first) {
  const chosen = chosenHere();
  if (value === first) chosen.delete(name);
  else chosen.set(name, value);
  const rest = chosen.size > 0 ? `?${chosen}` : "";
  const address = `${location.hash.split("?")[0] || "#/"}${rest}`;
  if (address !== (location.hash || "#/")) history.replaceState(null, "", address);
}

/** How many rows a long table begins with, and grows by. */
const SOME_ROWS = 150;

/**
 * A table that can be sorted by its columns and that grows as one scrolls.
 *
 * A column: `title`, `cell(row)`, and where it can be sorted by, `value(row)`; `right` for numbers;
 * `wide` if it is left out on narrow screens. `sort` is the title of the column to begin with.
 */
function table({ caption, columns, rows, sort, empty }) {
  const body = make("tbody");
  const more = make("button", { type: "button", class: "more", click: () => grow() });
  const head = make("tr");
  let sorted = null;
  let upwards = false;
  let given = rows;
  let order = rows;
  let shownRows = 0;

  for (const column of columns) {
    const words = column.value
      ? make("button", { type: "button", click: () => sortBy(column, true) }, column.title)
      : column.title;
    column.head = make("th", { scope: "col", class: classOf(column) }, words);
    head.append(column.head);
  }

  function classOf(column) {
    return [column.right && "right", column.wide && "wide", column.class].filter(Boolean).join(" ");
  }

  // Several tables may stand in one view.
  const kept = `sort ${caption.toLowerCase()}`;
  const naturally = (column) => !column.right;

  function sortBy(column, toggle) {
    upwards = toggle && sorted === column ? !upwards : naturally(column);
    sorted = column;
    if (toggle) keepChosen(kept, upwards === naturally(column) ? column.title : `${column.title} reversed`, sort);
    for (const it of columns) {
      if (it.value) it.head.setAttribute("aria-sort", "none");
    }
    column.head.setAttribute("aria-sort", upwards ? "ascending" : "descending");
    arrange();
  }

  function arrange() {
    order = given;
    if (sorted) {
      const sign = upwards ? 1 : -1;
      const keyed = given.map((row) => [sorted.value(row), row]);
      keyed.sort(([a], [b]) => (a < b ? -sign : a > b ? sign : 0));
      order = keyed.map(([, row]) => row);
    }
    body.replaceChildren();
    shownRows = 0;
    grow();
  }

  function grow() {
    const next = order.slice(shownRows, shownRows + SOME_ROWS);
    body.append(
      ...next.map((row) =>
        make("tr", null, columns.map((it) => make("td", { class: classOf(it) }, it.cell(row)))),
      ),
    );
    shownRows += next.length;
    const rest = order.length - shownRows;
    more.hidden = rest === 0;
    more.textContent = `Show more (${shown(rest)} left)`;
    if (order.length === 0) {
      body.append(make("tr", null, make("td", { colspan: columns.length, class: "muted" }, empty)));
    }
  }

  whenSeen(more, () => grow());
  const wanted = chosenHere().get(kept) ?? "";
  const named = (title) => columns.find((it) => it.value && it.title === title);
  const first = named(wanted.replace(/ reversed$/, "")) ?? named(sort);
  if (first) sortBy(first, false);
  else arrange();
  if (first && wanted === `${first.title} reversed`) sortBy(first, true);
  const element = make(
    "div",
    { class: "table" },
    make("table", null, make("caption", { class: "hidden" }, caption), make("thead", null, head), body),
    more,
  );
  return {
    element,
    /** Shows other rows, in the same order. */
    show(rows) {
      given = rows;
      arrange();
    },
  };
}

/** Calls when an element comes into sight, again and again. */
function whenSeen(element, call, margin = "600px") {
  const observer = new IntersectionObserver(
    (entries) => {
      if (entries.some((it) => it.isIntersecting)) call(observer);
    },
    { rootMargin: margin },
  );
  observer.observe(element);
}

/** Says something to those who listen to the page. */
function announce(text) {
  document.getElementById("status").textContent = text;
}
