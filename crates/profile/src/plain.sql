-- What `headcount export --format sqlite` writes: the rows of `headcount report`, as plain tables.
-- docs/sqlite.md explains them, with examples.
--
-- Every count is null if it is not known. `at_least` is 1 if a count of the row reached a limit and
-- may be larger. Addresses are link addresses; printf('0x%x', address) shows one.

CREATE TABLE runs (
    id      INTEGER PRIMARY KEY, -- in the order in which they were stored
    command TEXT NOT NULL,       -- words with blanks between; empty if unknown
    status  INTEGER              -- exit status, or 128 + signal; null if nobody saw the end
) STRICT;

CREATE TABLE modules (
    id           INTEGER PRIMARY KEY,
    module       TEXT    NOT NULL, -- path of the executable or the shared library
    build_id     TEXT    NOT NULL,
    executed     INTEGER,          -- instructions executed
    instructions INTEGER NOT NULL, -- how many there are
    never        INTEGER,          -- how many of those never ran
    at_least     INTEGER NOT NULL
) STRICT;

-- Names of source files, as the debug information has them.
CREATE TABLE sources (
    id   INTEGER PRIMARY KEY,
    file TEXT NOT NULL UNIQUE
) STRICT;

CREATE TABLE function_counts (
    id           INTEGER PRIMARY KEY,
    module_id    INTEGER NOT NULL REFERENCES modules,
    name         TEXT    NOT NULL, -- as the programmer wrote it
    linkage_name TEXT    NOT NULL, -- as the linker knows it
    address      INTEGER NOT NULL,
    source_id    INTEGER REFERENCES sources,
    line         INTEGER NOT NULL, -- 0 if unknown
    calls        INTEGER,          -- how often its first instruction ran
    executed     INTEGER,
    instructions INTEGER NOT NULL,
    never        INTEGER,
    at_least     INTEGER NOT NULL
) STRICT;

CREATE TABLE block_counts (
    function_id  INTEGER NOT NULL REFERENCES function_counts,
    address      INTEGER NOT NULL,
    instructions INTEGER NOT NULL,
    count        INTEGER,          -- how often it ran
    source_id    INTEGER REFERENCES sources,
    line         INTEGER NOT NULL, -- where it begins; 0 if unknown
    column       INTEGER NOT NULL, -- 0 unless source text was counted
    kind         TEXT    NOT NULL, -- code, or what it is in the source text
    at_least     INTEGER NOT NULL
) STRICT;

CREATE TABLE edge_counts (
    function_id  INTEGER NOT NULL REFERENCES function_counts,
    from_address INTEGER,          -- of a block; null if it comes from outside of the function
    to_address   INTEGER,          -- null if it leaves the function
    kind         TEXT    NOT NULL,
    count        INTEGER,
    at_least     INTEGER NOT NULL
) STRICT;

CREATE TABLE call_counts (
    function_id  INTEGER NOT NULL REFERENCES function_counts, -- the caller
    address      INTEGER NOT NULL, -- of the call instruction
    callee       TEXT    NOT NULL, -- * if only the run knew
    count        INTEGER,
    at_least     INTEGER NOT NULL
) STRICT;

CREATE TABLE line_counts (
    source_id    INTEGER NOT NULL REFERENCES sources,
    line         INTEGER NOT NULL,
    count        INTEGER,          -- how often a statement of the line began
    executed     INTEGER,
    exactness    TEXT NOT NULL,    -- of `count`: exact, at_least or unknown
    at_least     INTEGER NOT NULL,
    PRIMARY KEY (source_id, line)
) STRICT, WITHOUT ROWID;

CREATE TABLE file_counts (
    source_id       INTEGER PRIMARY KEY REFERENCES sources,
    executed        INTEGER,
    instructions    INTEGER NOT NULL,
    never           INTEGER,
    blocks_executed INTEGER,
    blocks          INTEGER NOT NULL,
    blocks_never    INTEGER,
    at_least        INTEGER NOT NULL
) STRICT;

-- What `--tally` and `--targets` found.
CREATE TABLE value_counts (
    module     TEXT NOT NULL,    -- empty if none was counted there
    function   TEXT NOT NULL,
    place      TEXT NOT NULL,    -- in the user's words; of targets, the indirect call or jump
    expression TEXT NOT NULL,    -- in the user's words; `target` of targets; empty if all is one
    value      TEXT NOT NULL,    -- a number, a range, a function, a text in quotes
    count      INTEGER NOT NULL,
    caller     TEXT NOT NULL,    -- empty if callers are not told apart
    sum        INTEGER,          -- of the amounts, if any are added up
    address    INTEGER,          -- of the instruction
    file       TEXT,             -- its source
    line       INTEGER
) STRICT;

-- What is not counted, and why.
CREATE TABLE refusals (
    module  TEXT    NOT NULL,
    subject TEXT    NOT NULL,
    file    TEXT    NOT NULL, -- empty if unknown
    line    INTEGER NOT NULL, -- 0 if unknown
    reason  TEXT    NOT NULL
) STRICT;

-- What makes counts uncertain, in sentences.
CREATE TABLE notes (
    note TEXT NOT NULL
) STRICT;

CREATE VIEW functions AS
SELECT module, name AS function, file, line, calls, f.executed, f.instructions, f.never,
       f.at_least, linkage_name, address, f.id, module_id
FROM function_counts AS f
JOIN modules ON modules.id = module_id
LEFT JOIN sources ON sources.id = source_id;

CREATE VIEW lines AS
SELECT file, line, count, executed, at_least, exactness
FROM line_counts JOIN sources ON sources.id = source_id;

CREATE VIEW files AS
SELECT file, executed, instructions, never, blocks_executed, blocks, blocks_never, at_least
FROM file_counts JOIN sources ON sources.id = source_id;

CREATE VIEW blocks AS
SELECT module, name AS function, b.address, b.instructions, count, file, b.line, column, kind,
       b.at_least, function_id
FROM block_counts AS b
JOIN function_counts AS f ON f.id = function_id
JOIN modules ON modules.id = module_id
LEFT JOIN sources ON sources.id = b.source_id;

CREATE VIEW edges AS
SELECT module, name AS function, from_address, to_address, kind, count, e.at_least, function_id
FROM edge_counts AS e
JOIN function_counts AS f ON f.id = function_id
JOIN modules ON modules.id = module_id;

CREATE VIEW calls AS
SELECT module, name AS caller, c.address, callee, count, c.at_least, function_id
FROM call_counts AS c
JOIN function_counts AS f ON f.id = function_id
JOIN modules ON modules.id = module_id;
