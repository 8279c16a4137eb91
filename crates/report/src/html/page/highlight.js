// Comments, strings, numbers and keywords in source text, for the eye. It knows no grammar: what it
// does not recognise is shown plainly, and no text is ever lost.

const C_WORDS =
  "alignas alignof auto bool break case catch char class const constexpr continue decltype default delete do double else enum explicit extern false float for friend goto if inline int long mutable namespace new noexcept nullptr operator private protected public register restrict return short signed sizeof static static_assert static_cast struct switch template this throw true try typedef typename union unsigned using virtual void volatile while size_t uint8_t uint16_t uint32_t uint64_t int8_t int16_t int32_t int64_t NULL";
const RUST_WORDS =
  "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize String Vec Option Result Some None Ok Err";
const GO_WORDS =
  "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var nil true false bool byte error float64 int int64 rune string uint64";

const LANGUAGES = [
  { endings: /\.(c|h|cc|cpp|cxx|hpp|hh|hxx|inl|ipp|tcc|m|mm|l|y)$/i, words: C_WORDS, line: "//", block: true },
  { endings: /\.rs$/i, words: RUST_WORDS, line: "//", block: true },
  { endings: /\.go$/i, words: GO_WORDS, line: "//", block: true },
  { endings: /\.(f|f90|f95|f03|f08|for)$/i, words: "", line: "!", block: false },
  { endings: /\.(s|asm)$/i, words: "", line: "#", block: true },
];

/** What is known of the language of a file: `null` if nothing. */
function languageOf(path) {
  const found = LANGUAGES.find((it) => it.endings.test(path));
  if (!found) return null;
  return { ...found, words: new Set(found.words.split(" ")) };
}

/** For every line, whether it begins inside a comment that began above. */
function insideComments(lines, language) {
  const inside = new Uint8Array(lines.length);
  if (!language?.block) return inside;
  let open = 0;
  for (let i = 0; i < lines.length; i++) {
    inside[i] = open;
    if (open || lines[i].includes("/*")) open = commentAfter(lines[i], open, language);
  }
  return inside;
}

function commentAfter(line, open, language) {
  for (const [kind, text] of tokens(line, open, language)) {
    if (kind === "comment" && !text.startsWith(language.line)) open = text.endsWith("*/") ? 0 : 1;
    else if (kind === "comment") open = 0;
  }
  return open;
}

/** A line in pieces: what it is, and its text. */
function* tokens(line, open, language) {
  let at = 0;
  if (open) {
    const end = line.indexOf("*/");
    if (end < 0) {
      yield ["comment", line];
      return;
    }
    yield ["comment", line.slice(0, end + 2)];
    at = end + 2;
  }
  const pattern = /"(?:[^"\\]|\\.)*"?|'(?:[^'\\]|\\.)'|[A-Za-z_]\w*|\d[\w.]*|\/\*|./gsu;
  pattern.lastIndex = at;
  for (let found = pattern.exec(line); found; found = pattern.exec(line)) {
    const [text] = found;
    const rest = line.slice(found.index);
    if (rest.startsWith(language.line)) {
      yield ["comment", rest];
      return;
    }
    if (text === "/*" && language.block) {
      const end = line.indexOf("*/", found.index + 2);
      yield ["comment", end < 0 ? rest : line.slice(found.index, end + 2)];
      if (end < 0) return;
      pattern.lastIndex = end + 2;
    } else if (text.length > 1 && (text[0] === '"' || text[0] === "'")) yield ["string", text];
    else if (/^\d/.test(text)) yield ["number", text];
    else if (language.words.has(text)) yield ["word", text];
    else yield ["", text];
  }
}

/** Longer lines are data, not something to read. */
const LONGEST_LINE = 2000;

/** A line of source as nodes. */
function highlighted(line, open, language) {
  if (!language || line.length > LONGEST_LINE) return [line];
  const nodes = [];
  let plain = "";
  const flush = () => {
    if (plain) nodes.push(plain);
    plain = "";
  };
  for (const [kind, text] of tokens(line, open, language)) {
    if (kind === "") plain += text;
    else {
      flush();
      nodes.push(span(`t-${kind}`, text));
    }
  }
  flush();
  return nodes;
}
