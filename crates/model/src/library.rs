//! What is known of functions of the C library by their names: who always comes back, who never does, who comes
//! back more than once.
//!
//! A call that may not come back ends a block and costs a counter; one that surely does costs
//! nothing. "Surely" leaves out everything that runs code of the program (`qsort`), may be
//! cancelled (`read`), may throw (`operator new`) or may be replaced in earnest. Faults and kills
//! are no concern here: they can strike between any two instructions.

/// Functions of the C library that always come back to their caller. Only names that ISO C (or
/// the implementation, by its underscores) reserves: any other may be the program's own.
pub fn always_returns(name: &str) -> bool {
    let name = name.strip_prefix("__isoc99_").unwrap_or(name);
    let name = name.strip_prefix("__").unwrap_or(name);
    SURE.binary_search(&name).is_ok() || is_mathematical(name)
}

/// `sin`, `sinf`, `sinl` and the rest of `math.h`.
fn is_mathematical(name: &str) -> bool {
    let bare = name.strip_suffix(['f', 'l']).unwrap_or(name);
    MATHEMATICAL.binary_search(&name).is_ok() || MATHEMATICAL.binary_search(&bare).is_ok()
}

/// Functions that never come back. Only a hint that the way to them is seldom taken: the flow
/// graph does not rely on it.
pub fn never_returns(name: &str) -> bool {
    NEVER.binary_search(&name).is_ok() || name.starts_with("_ZSt") && name.contains("__throw_")
}

/// Functions whose call may be followed by more arrivals than there were calls. (A fork comes back
/// in two processes, whose counts add up; recovery allows for that.)
pub fn returns_twice(name: &str) -> bool {
    matches!(
        name.trim_start_matches('_'),
        "setjmp" | "sigsetjmp" | "savectx" | "vfork" | "getcontext" | "swapcontext"
    )
}

/// Functions that may make a new process behind the C library's back, or whose fork handlers a
/// static C library may lack.
pub fn may_fork(name: &str) -> bool {
    matches!(
        name,
        "_Fork" | "clone" | "__clone" | "__clone2" | "syscall" | "fork" | "daemon" | "forkpty"
    )
}

/// Functions whose child begins in a function of its own.
pub fn starts_elsewhere(name: &str) -> bool {
    matches!(name, "clone" | "__clone" | "__clone2")
}

const SURE: [&str; 85] = [
    "abs",
    "aligned_alloc",
    "atof",
    "atoi",
    "atol",
    "atoll",
    "calloc",
    "clock",
    "ctype_b_loc",
    "ctype_tolower_loc",
    "ctype_toupper_loc",
    "div",
    "errno_location",
    "feclearexcept",
    "free",
    "getenv",
    "gmtime",
    "isalnum",
    "isalpha",
    "isdigit",
    "islower",
    "isprint",
    "isspace",
    "isupper",
    "isxdigit",
    "labs",
    "ldiv",
    "llabs",
    "lldiv",
    "localtime",
    "malloc",
    "malloc_usable_size",
    "memccpy",
    "memchr",
    "memcmp",
    "memcpy",
    "memmem",
    "memmove",
    "mempcpy",
    "memrchr",
    "memset",
    "mktime",
    "posix_memalign",
    "rand",
    "rand_r",
    "rawmemchr",
    "realloc",
    "reallocarray",
    "srand",
    "stpcpy",
    "stpncpy",
    "strcasecmp",
    "strcat",
    "strchr",
    "strchrnul",
    "strcmp",
    "strcoll",
    "strcpy",
    "strcspn",
    "strdup",
    "strlen",
    "strncasecmp",
    "strncat",
    "strncmp",
    "strncpy",
    "strndup",
    "strnlen",
    "strpbrk",
    "strrchr",
    "strspn",
    "strstr",
    "strtod",
    "strtof",
    "strtok",
    "strtok_r",
    "strtol",
    "strtold",
    "strtoll",
    "strtoul",
    "strtoull",
    "time",
    "tls_get_addr",
    "tolower",
    "toupper",
    "wcslen",
];

const MATHEMATICAL: [&str; 58] = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "exp",
    "exp10",
    "exp2",
    "expm1",
    "fabs",
    "fdim",
    "floor",
    "fma",
    "fmax",
    "fmin",
    "fmod",
    "frexp",
    "hypot",
    "ilogb",
    "ldexp",
    "lgamma",
    "llrint",
    "llround",
    "log",
    "log10",
    "log1p",
    "log2",
    "logb",
    "lrint",
    "lround",
    "modf",
    "nan",
    "nearbyint",
    "nextafter",
    "pow",
    "powi",
    "remainder",
    "remquo",
    "rint",
    "round",
    "scalbln",
    "scalbn",
    "sin",
    "sincos",
    "sinh",
    "sqrt",
    "tan",
    "tgamma",
    "trunc",
];

const NEVER: [&str; 25] = [
    "_Exit",
    "_Unwind_Resume",
    "_ZSt9terminatev",
    "__assert_fail",
    "__cxa_bad_cast",
    "__cxa_pure_virtual",
    "__cxa_rethrow",
    "__cxa_throw",
    "__cxa_throw_bad_array_new_length",
    "__fortify_fail",
    "__longjmp_chk",
    "__stack_chk_fail",
    "_exit",
    "_gfortran_error_stop_string",
    "_gfortran_os_error",
    "_gfortran_runtime_error",
    "_gfortran_runtime_error_at",
    "_gfortran_stop_string",
    "_longjmp",
    "abort",
    "exit",
    "longjmp",
    "pthread_exit",
    "quick_exit",
    "siglongjmp",
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_in_order() {
        assert!(SURE.is_sorted());
        assert!(MATHEMATICAL.is_sorted());
        assert!(NEVER.is_sorted());
    }

    #[test]
    fn names_are_recognised_in_all_their_guises() {
        for name in [
            "memcpy",
            "__tls_get_addr",
            "sqrtf",
            "__errno_location",
            "sinl",
        ] {
            assert!(always_returns(name), "{name}");
        }
        for name in [
            "__memcpy_chk",
            "qsort",
            "read",
            "exit",
            "_Znwm",
            "printf",
            "foo",
        ] {
            assert!(!always_returns(name), "{name}");
        }
        for name in ["__sigsetjmp", "_setjmp", "vfork"] {
            assert!(returns_twice(name), "{name}");
        }
        for name in ["longjmp", "fork", "_Fork", "syscall"] {
            assert!(!returns_twice(name), "{name}");
        }
        assert!(never_returns("_ZSt20__throw_length_errorPKc"));
    }
}
