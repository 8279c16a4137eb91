-- The tables of a headcount profile.
--
-- Facts about a build are stored once (modules, files, functions, refusals); each run adds only
-- what it counted (runs, processes, threads, run_modules, system_calls), what its calls cost (calls), what it found by value (run_values),
-- what each of its threads counted (run_threads), what interpreters did for their programs (run_runtimes)
-- and where its time went (samples).
--
-- The ten largest functions:
--
--     SELECT name, instructions FROM functions ORDER BY instructions DESC LIMIT 10;
--
-- Addresses are link addresses. One above 2^63 is stored as the negative number with the same
-- bits; printf('0x%x', address) shows any of them rightly. Counts and times are never negative.
--
-- The functions, blocks and edges of one module have consecutive ids, in the module's own order:
-- `modules.first_block` and `modules.blocks` say which blocks are its, and so on. Blocks and edges
-- have no tables: what is known of them is in `functions.facts`, as `facts.rs` tells, and how often
-- they ran in `run_modules.counts`. `headcount export --format sqlite` writes plain tables of
-- everything.

-- An executable or a shared library; two files with the same build_id are the same build.
CREATE TABLE modules (
    id             INTEGER PRIMARY KEY,
    build_id       TEXT    NOT NULL UNIQUE,
    path           TEXT    NOT NULL, -- where it was when it ran last
    shape          TEXT    NOT NULL, -- a digest of its functions, blocks and edges
    first_function INTEGER NOT NULL,
    functions      INTEGER NOT NULL,
    first_block    INTEGER NOT NULL,
    blocks         INTEGER NOT NULL,
    first_edge     INTEGER NOT NULL,
    edges          INTEGER NOT NULL
) STRICT;

-- A source file, as the debug information names it.
CREATE TABLE files (
    module INTEGER NOT NULL REFERENCES modules,
    number INTEGER NOT NULL, -- from 0
    name   TEXT    NOT NULL,
    PRIMARY KEY (module, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE functions (
    id           INTEGER PRIMARY KEY,
    module       INTEGER NOT NULL REFERENCES modules,
    name         TEXT    NOT NULL, -- the linker's name
    address      INTEGER NOT NULL,
    file         INTEGER,          -- files.number, if the build says
    line         INTEGER,
    counters     INTEGER NOT NULL, -- how many counters its counts were recovered from
    first_block  INTEGER NOT NULL, -- its blocks have consecutive ids, by address
    blocks       INTEGER NOT NULL,
    first_edge   INTEGER NOT NULL, -- and so have its edges
    edges        INTEGER NOT NULL,
    instructions INTEGER NOT NULL, -- in all its blocks
    facts        BLOB    NOT NULL  -- its blocks, with their code and lines, and its edges; and then
                                   -- those of the functions behind it whose own are empty
) STRICT;

-- What is not counted, and why.
CREATE TABLE refusals (
    module  INTEGER NOT NULL REFERENCES modules,
    number  INTEGER NOT NULL,
    subject TEXT    NOT NULL,
    file    TEXT    NOT NULL, -- empty if unknown
    line    INTEGER NOT NULL, -- 0 if unknown
    reason  TEXT    NOT NULL,
    PRIMARY KEY (module, number)
) STRICT, WITHOUT ROWID;

CREATE TABLE runs (
    id      INTEGER PRIMARY KEY,
    key     TEXT    NOT NULL UNIQUE, -- names the run for ever: no run is stored twice
    batch   TEXT    NOT NULL,        -- the same for all runs of one command
    phase   TEXT    NOT NULL,        -- the mark it began with, if it is a part of what a program did
    command TEXT    NOT NULL,        -- a JSON array of strings
    started INTEGER NOT NULL,        -- nanoseconds since 1970; 0 if unknown
    ended   INTEGER NOT NULL,
    part    INTEGER NOT NULL,        -- 1 if it saw only a part of what the program did, else 0
    status  INTEGER,                 -- exit status, or 128 + signal; null if nobody saw the end
    cpu     TEXT    NOT NULL,
    host    TEXT    NOT NULL,        -- the machine that took it into a profile; empty if unknown
    notes   TEXT    NOT NULL         -- a JSON array of sentences: what makes counts uncertain
) STRICT;

CREATE TABLE processes (
    id  INTEGER PRIMARY KEY,
    run INTEGER NOT NULL REFERENCES runs,
    pid INTEGER NOT NULL
) STRICT;

CREATE TABLE threads (
    id      INTEGER PRIMARY KEY,
    process INTEGER NOT NULL REFERENCES processes,
    tid     INTEGER NOT NULL
) STRICT;

-- Where a process had a module: what load addresses have more than link addresses, as a number with
-- the same bits.
CREATE TABLE loaded (
    process INTEGER NOT NULL REFERENCES processes,
    module  INTEGER NOT NULL REFERENCES modules,
    bias    INTEGER NOT NULL
) STRICT;

-- What a run counted of a module: counts; or, until a report asks for them, the readings of the
-- counters that they will be made of. The other one is null.
CREATE TABLE run_modules (
    run      INTEGER NOT NULL REFERENCES runs,
    module   INTEGER NOT NULL REFERENCES modules,
    counts   BLOB, -- of its blocks and edges, as `counts.rs` tells
    readings BLOB,
    PRIMARY KEY (run, module)
) STRICT;

-- How often a run made system calls, where somebody saw their numbers.
CREATE TABLE system_calls (
    run    INTEGER NOT NULL REFERENCES runs,
    number INTEGER NOT NULL, -- -1: any that x86-64 has no call for
    count  INTEGER NOT NULL,
    PRIMARY KEY (run, number)
) STRICT, WITHOUT ROWID;

-- What the calls of a run cost, if that was asked for.
CREATE TABLE calls (
    run    INTEGER PRIMARY KEY REFERENCES runs,
    packed BLOB    NOT NULL -- functions, calls and contexts, as `call_costs/kept.rs` of the crate `model` tells
) STRICT;

-- What a run found by value, if that was asked for.
CREATE TABLE run_values (
    run    INTEGER PRIMARY KEY REFERENCES runs,
    packed BLOB    NOT NULL -- tallies and what they found, as `value_counts.rs` of the crate `model` tells
) STRICT;

-- What each thread of a run counted, if that was asked for.
CREATE TABLE run_threads (
    run    INTEGER PRIMARY KEY REFERENCES runs,
    packed BLOB    NOT NULL -- as `thread_counts.rs` of the crate `model` tells
) STRICT;

-- What the runtime of interpreters cost in a run, where that was measured.
CREATE TABLE run_runtimes (
    run    INTEGER PRIMARY KEY REFERENCES runs,
    packed BLOB    NOT NULL -- samples and storage, as `runtime_costs.rs` of the crate `model` tells
) STRICT;

-- What a clock saw of a run: call stacks, by thread.
CREATE TABLE samples (
    run      INTEGER PRIMARY KEY REFERENCES runs,
    interval INTEGER NOT NULL, -- nanoseconds on a processor that one sample stands for
    samples  INTEGER NOT NULL, -- how many there are
    counted  INTEGER NOT NULL, -- 1 if the program was counted at the same time, else 0
    packed   BLOB    NOT NULL  -- the stacks, as `samples.rs` tells
) STRICT;
