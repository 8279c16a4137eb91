//! C that counts itself with any compiler: a few lines before it and a small runtime behind it,
//! in plain C11.
//!
//! The text has been through a preprocessor, so it holds pieces of the C library's headers. None
//! can be included again; what the runtime needs of the library is declared where the text does
//! not declare it.

use std::fmt::Write;
use std::hash::{DefaultHasher, Hash, Hasher};

use headcount_csource::map::encode;
use headcount_csource::{Dialect, Probe};

use super::planned::Counted;

/// Begins a file of counts that a portable runtime wrote.
pub const MAGIC: &[u8; 8] = b"HdCtText";
/// How the names of such files end.
pub const SUFFIX: &str = ".text-counts";
/// Raised whenever their layout, or that of the map, changes.
pub const VERSION: u8 = 2;

/// Where the text includes headers itself, they may be included again.
const HEADERS: &str = "#include <stdio.h>\n#include <stdlib.h>\n\
    #if defined(__unix__) || defined(__linux__) || defined(__APPLE__)\n\
    #include <sys/stat.h>\n#include <unistd.h>\n#endif\n";

/// Where the C library may know the first word of the program's command, though its headers do not
/// tell everybody.
const INVOCATION_NAME: &str = "#if defined(__gnu_linux__) && !defined(__ANDROID__)\n\
    extern char *program_invocation_name __attribute__((__weak__));\n#endif\n";
const GETPROGNAME: &str = "#if defined(__APPLE__) || defined(__FreeBSD__) || defined(__NetBSD__) \
    || defined(__OpenBSD__) || defined(__DragonFly__)\n\
    extern const char *getprogname(void);\n#endif\n";

/// Warnings that are off for all of the text. Headers of the system, and their macros, are not fit
/// for them, and what marks a line as the system's is not standard C, which is all that some
/// compilers are told to take; and a comment that says that a case falls through may be gone.
const TOO_STRICT: [&str; 26] = [
    // Other compilers than gcc do not know all of these.
    "pragmas",
    "implicit-fallthrough",
    "pedantic",
    "long-long",
    "conversion",
    "sign-conversion",
    "float-conversion",
    "sign-compare",
    "type-limits",
    "cast-qual",
    "cast-align",
    "bad-function-cast",
    "float-equal",
    "double-promotion",
    "redundant-decls",
    "strict-prototypes",
    "old-style-definition",
    "missing-prototypes",
    "missing-declarations",
    "nested-externs",
    "shadow",
    "unused-parameter",
    "unused-function",
    "attributes",
    "c++-compat",
    "traditional-conversion",
];

/// What the runtime needs of the C library.
pub const NEEDED: [&str; 10] = [
    "fopen",
    "fclose",
    "fread",
    "fwrite",
    "getenv",
    "atexit",
    "getpid",
    "mkdir",
    "getprogname",
    "program_invocation_name",
];

/// The words of one text: its names end in a number of its own.
pub struct Portable {
    tag: String,
}

impl Portable {
    pub fn new(name: &str, text: &[u8]) -> Self {
        let mut hasher = DefaultHasher::new();
        (name, text).hash(&mut hasher);
        Self {
            tag: format!("{:016x}", hasher.finish()),
        }
    }

    /// What stands before the text.
    pub fn opening(&self, counters: usize) -> String {
        let (tag, size) = (&self.tag, counters.max(1));
        let ignored = |name| format!("#pragma GCC diagnostic ignored \"-W{name}\"\n");
        let quiet: String = TOO_STRICT.map(ignored).concat();
        format!(
            "/* Counted by headcount: the program writes its counts into headcount.counts when it exits. */\n\
             #if defined(__clang__)\n\
             #pragma clang diagnostic ignored \"-Weverything\"\n\
             #elif defined(__GNUC__)\n\
             {quiet}\
             #endif\n\
             #if defined(__GNUC__)\n\
             __extension__ typedef unsigned long long headcount_long_{tag};\n\
             extern headcount_long_{tag} headcount_counters_{tag}[{size}];\n\
             #define HEADCOUNT_COUNT(n) ((void)__atomic_fetch_add(&headcount_counters_{tag}[n], 1, __ATOMIC_RELAXED))\n\
             #define HEADCOUNT_FALLS __attribute__((__fallthrough__));\n\
             #define HEADCOUNT_UNUSED __attribute__((__unused__))\n\
             #elif defined(__STDC_VERSION__) && __STDC_VERSION__ >= 201112L && !defined(__STDC_NO_ATOMICS__)\n\
             typedef unsigned long long headcount_long_{tag};\n\
             extern _Atomic headcount_long_{tag} headcount_counters_{tag}[{size}];\n\
             #define HEADCOUNT_COUNT(n) ((void)headcount_counters_{tag}[n]++)\n\
             #define HEADCOUNT_FALLS\n\
             #define HEADCOUNT_UNUSED\n\
             #else\n\
             typedef unsigned long long headcount_long_{tag};\n\
             extern headcount_long_{tag} headcount_counters_{tag}[{size}];\n\
             #define HEADCOUNT_COUNT(n) ((void)headcount_counters_{tag}[n]++)\n\
             #define HEADCOUNT_FALLS\n\
             #define HEADCOUNT_UNUSED\n\
             #endif\n\
             extern int headcount_started_{tag};\n\
             void headcount_start_{tag}(void);\n"
        )
    }

    /// What stands behind it.
    pub fn ending(&self, counted: &Counted) -> String {
        let map = &counted.map;
        let declares = |name: &str| counted.declared.contains(&name);
        let mut out = String::from("\n");
        match counted.is_raw {
            true => out.push_str(HEADERS),
            false => self.declarations(&mut out, &declares),
        }
        for (name, declaration) in [
            ("program_invocation_name", INVOCATION_NAME),
            ("getprogname", GETPROGNAME),
        ] {
            if !declares(name) {
                out.push_str(declaration);
            }
        }
        let bytes = encode(map);
        let (tag, length) = (&self.tag, bytes.len());
        let _ = writeln!(out, "static const unsigned char headcount_map_{tag}[] = {{");
        for line in bytes.chunks(32) {
            let numbers: Vec<String> = line.iter().map(u8::to_string).collect();
            let _ = writeln!(out, "{},", numbers.join(","));
        }
        let _ = writeln!(out, "}};");
        let magic = String::from_utf8_lossy(MAGIC);
        let file = if counted.is_raw || declares("fopen") {
            "FILE"
        } else {
            "struct headcount_file"
        };
        let stem = map.name.rsplit('/').next().unwrap_or_default();
        let is_plain = |it: &char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_');
        let stem: String = stem.chars().filter(is_plain).collect();
        let size = map.counters().max(1);
        let count = map.counters();
        let text = include_str!("portable.c");
        let filled = text
            .replace("@TAG@", tag)
            .replace("@FILE@", file)
            .replace("@STEM@", &stem)
            .replace("@MAGIC@", &magic)
            .replace("@SUFFIX@", SUFFIX)
            .replace("@VERSION@", &VERSION.to_string())
            .replace("@LENGTH@", &length.to_string())
            .replace("@SIZE@", &size.to_string())
            .replace("@COUNT@", &count.to_string());
        out.push_str(&filled);
        out
    }

    fn declarations(&self, out: &mut String, declares: &dyn Fn(&str) -> bool) {
        let tag = &self.tag;
        let _ = writeln!(
            out,
            "#ifdef __SIZE_TYPE__\ntypedef __SIZE_TYPE__ headcount_size_{tag};\n#else\n\
             typedef unsigned long headcount_size_{tag};\n#endif"
        );
        let file = match declares("fopen") {
            true => "FILE *",
            false => "struct headcount_file *",
        };
        let needed = [
            ("fopen", format!("{file}fopen(const char *, const char *);")),
            ("fclose", format!("int fclose({file});")),
            (
                "fwrite",
                format!(
                    "headcount_size_{tag} fwrite(const void *, headcount_size_{tag}, headcount_size_{tag}, {file});"
                ),
            ),
            (
                "fread",
                format!(
                    "headcount_size_{tag} fread(void *, headcount_size_{tag}, headcount_size_{tag}, {file});"
                ),
            ),
            ("getenv", "char *getenv(const char *);".to_owned()),
            ("atexit", "int atexit(void (*)(void));".to_owned()),
        ];
        for (name, declaration) in needed {
            if !declares(name) {
                let _ = writeln!(out, "extern {declaration}");
            }
        }
        let _ = writeln!(
            out,
            "#if defined(__unix__) || defined(__linux__) || defined(__APPLE__)"
        );
        let posix = [
            ("getpid", "int getpid(void);"),
            ("mkdir", "int mkdir(const char *, unsigned int);"),
        ];
        for (name, declaration) in posix {
            if !declares(name) {
                let _ = writeln!(out, "extern {declaration}");
            }
        }
        let _ = writeln!(out, "#endif");
    }
}

impl Dialect for Portable {
    fn statement(&self, probe: Probe, out: &mut String) {
        let _ = write!(out, "HEADCOUNT_COUNT({});", probe.counter);
    }

    fn expression(&self, probe: Probe, out: &mut String) {
        let _ = write!(out, "HEADCOUNT_COUNT({})", probe.counter);
    }

    fn declaration(&self, probe: Probe, out: &mut String) {
        let counter = probe.counter;
        let _ = write!(
            out,
            "HEADCOUNT_UNUSED int headcount_at_{counter} = (HEADCOUNT_COUNT({counter}), 0);"
        );
    }

    fn fall_through(&self) -> &str {
        "HEADCOUNT_FALLS"
    }

    fn enter(&self) -> String {
        let tag = &self.tag;
        format!("if (!headcount_started_{tag}) headcount_start_{tag}();")
    }

    fn enter_declaration(&self) -> String {
        let tag = &self.tag;
        format!(
            "HEADCOUNT_UNUSED int headcount_entered = \
             headcount_started_{tag} ? 0 : (headcount_start_{tag}(), 0);"
        )
    }

    /// Compilers that are told to keep to the standard take no others.
    fn line_marker(&self, line: &str, file: &str, _: bool, out: &mut Vec<u8>) {
        for part in ["#line ", line, " \"", file, "\"\n"] {
            out.extend_from_slice(part.as_bytes());
        }
    }

    fn rewrites_markers(&self) -> bool {
        true
    }

    fn around_fork(&self, _: &str) -> Option<(String, String)> {
        None
    }
}
