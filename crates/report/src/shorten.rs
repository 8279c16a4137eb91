//! Long names and texts in little room.

/// What stands for what is left out.
const LEFT_OUT: char = '…';

/// The name of a function in a sentence, by the linker's name.
pub fn brief(name: &str) -> String {
    const MOST: usize = 60;
    shorten_middle(&crate::demangle(name), MOST)
}

/// A text of at most so many characters: the end is left out.
pub fn shorten_end(text: &str, most: usize) -> String {
    match text.chars().count() <= most {
        true => text.to_owned(),
        false => {
            let kept = text.chars().take(most.saturating_sub(1));
            kept.chain([LEFT_OUT]).collect()
        }
    }
}

/// A name of at most so many characters: first the modules of a Rust type and its trait are left
/// out, and namespaces without a name, then the arguments of templates, the innermost first, then what a
/// function is in, then the middle.
pub fn shorten_middle(name: &str, most: usize) -> String {
    let fits = |name: &str| name.chars().count() <= most;
    if fits(name) {
        return name.to_owned();
    }
    let mut name = without_modules(name).unwrap_or_else(|| name.to_owned());
    if !fits(&name) {
        name = name.replace(NAMELESS, "");
    }
    while !fits(&name) {
        match without_innermost(&name) {
            Some(shorter) => name = shorter,
            None => break,
        }
    }
    if fits(&name) {
        return name;
    }
    without_path(&name, most).unwrap_or_else(|| without_middle(&name, most))
}

/// What is in no namespace that has a name.
const NAMELESS: &str = "(anonymous namespace)::";

/// As many of the last parts of a path as there is room for, be it that the first of them is cut.
fn without_path(name: &str, most: usize) -> Option<String> {
    let parts = parts(name);
    // What a closure is in says more than that it is one.
    let is_named = |at: &&usize| !name[**at..].starts_with('{');
    let last = parts.iter().rev().find(is_named)?;
    let room = |rest: &str| most.checked_sub(rest.chars().count());
    let whole = |at: &&usize| room(&name[**at..]).is_some_and(|it| it >= "…::".chars().count());
    match parts.iter().find(whole) {
        // All in front of the last name, as far as that fits.
        Some(at) if at < last => Some(format!("{LEFT_OUT}::{}", &name[*at..])),
        _ if *last == 0 => None,
        _ if room(&name[*last..]).is_some_and(|it| it > 0) => {
            // Half of what divides parts says nothing.
            let short = shorten_start(name, most);
            let rest = short.strip_prefix("…:");
            let rest = rest.filter(|it| !it.starts_with(':'));
            Some(rest.map_or_else(|| short.clone(), |it| format!("{LEFT_OUT}{it}")))
        }
        _ => Some(without_middle(&name[*last..], most)),
    }
}

/// Where the parts of a path begin that `::` divides.
fn parts(name: &str) -> Vec<usize> {
    let mut depth = 0_i32;
    let mut parts = vec![0];
    for (at, c) in name.char_indices() {
        match c {
            '<' | '(' | '[' => depth += 1,
            '>' | ')' | ']' => depth -= 1,
            ':' if depth == 0 && name[at..].starts_with("::") => parts.push(at + "::".len()),
            _ => (),
        }
    }
    parts
}

fn without_middle(name: &str, most: usize) -> String {
    let length = name.chars().count();
    if length <= most {
        return name.to_owned();
    }
    let kept = most.saturating_sub(1);
    let (front, back) = (kept - kept / 2, kept / 2);
    let front = name.chars().take(front);
    let back = name.chars().skip(length - back);
    front.chain([LEFT_OUT]).chain(back).collect()
}

/// A text of at most so many characters: the beginning is left out.
pub fn shorten_start(text: &str, most: usize) -> String {
    let length = text.chars().count();
    match length <= most {
        true => text.to_owned(),
        false => {
            let kept = text.chars().skip(length - most.saturating_sub(1));
            [LEFT_OUT].into_iter().chain(kept).collect()
        }
    }
}

/// Lines of at most so many characters, as far as words are not longer: each goes on as far from the
/// left as it begins.
pub fn wrap(text: &str, width: usize) -> String {
    let mut out = String::new();
    for line in text.lines() {
        if line.chars().count() <= width {
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let margin = &line[..line.len() - line.trim_start().len()];
        out.push_str(margin);
        let mut used = margin.len();
        for (place, word) in line.split_whitespace().enumerate() {
            let length = word.chars().count();
            if place > 0 && used + 1 + length > width {
                out.push('\n');
                out.push_str(margin);
                used = margin.len();
            } else if place > 0 {
                out.push(' ');
                used += 1;
            }
            out.push_str(word);
            used += length;
        }
        out.push('\n');
    }
    out
}

/// `<Reader as Read>::read` for `<std::io::Reader as std::io::Read>::read`.
fn without_modules(name: &str) -> Option<String> {
    let inside = name.strip_prefix('<')?;
    let mut depth = 1;
    let end = inside.find(|c| {
        depth += i32::from(c == '<') - i32::from(c == '>');
        depth == 0
    })?;
    let (inside, rest) = inside.split_at(end);
    let (kind, of) = inside.split_once(" as ")?;
    if kind.matches('<').count() != kind.matches('>').count() {
        return None; // this `as` is one of an inner type
    }
    // What is before the last word's modules, as `&mut `, stays.
    let last = |path: &str| {
        let front = path.find('<').unwrap_or(path.len());
        let name = path[..front].rfind("::").map_or(0, |at| at + "::".len());
        let is_of_path = |c: char| c.is_alphanumeric() || matches!(c, '_' | ':');
        let before = path[..name].trim_end_matches(is_of_path).len();
        format!("{}{}", &path[..before], &path[name..])
    };
    Some(format!("<{} as {}{rest}", last(kind), last(of)))
}

/// Without the longest of the innermost `<...>` and `(...)`. What is left out already is not looked
/// into.
fn without_innermost(name: &str) -> Option<String> {
    let mut open = Vec::new();
    let mut longest = 0..0;
    for (at, c) in name.char_indices() {
        match c {
            '<' | '(' => open.push(at + 1),
            '>' | ')' => {
                let Some(begin) = open.pop() else {
                    continue;
                };
                let inside = name[begin..at].replace("<…>", "").replace("(…)", "");
                let is_innermost = !inside.contains(['<', '(']);
                let is_long = at > begin + LEFT_OUT.len_utf8();
                if is_innermost && is_long && at - begin > longest.len() {
                    longest = begin..at;
                }
            }
            _ => (),
        }
    }
    let (front, back) = (name.get(..longest.start)?, name.get(longest.end..)?);
    (!longest.is_empty()).then(|| format!("{front}{LEFT_OUT}{back}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_fits_stays() {
        assert_eq!(shorten_middle("main", 4), "main");
        assert_eq!(shorten_end("int main(void)", 14), "int main(void)");
    }

    #[test]
    fn what_is_around_arguments_goes_when_they_are_gone() {
        let name = "count(std::basic_istream<char, std::char_traits<char> >&)";
        assert_eq!(shorten_middle(name, 40), "count(std::basic_istream<…>&)");
        assert_eq!(shorten_middle(name, 20), "count(…)");
    }

    #[test]
    fn lines_are_broken_between_words() {
        let text = "one two three\n\n  four five six\nextraordinarily so";
        let expected = "one two\nthree\n\n  four\n  five\n  six\nextraordinarily\nso\n";
        assert_eq!(wrap(text, 8), expected);
        assert_eq!(wrap(text, 80), format!("{text}\n"));
        assert_eq!(wrap("a b", 3), "a b\n");
        assert_eq!(wrap("a b c", 3), "a b\nc\n");
        assert_eq!(wrap("a b", 2), "a\nb\n");
        assert_eq!(wrap("a  b", 4), "a  b\n");
    }

    #[test]
    fn the_end_of_a_path_says_most() {
        assert_eq!(shorten_start("src/report/rows.rs:68", 12), "…/rows.rs:68");
        assert_eq!(shorten_start("rows.rs:68", 10), "rows.rs:68");
    }

    #[test]
    fn a_method_keeps_its_type_and_its_trait() {
        for (name, short) in [
            (
                "<&alloc::vec::Vec<u8> as core::fmt::Debug>::fmt",
                "<&Vec<u8> as Debug>::fmt",
            ),
            ("<std::io::A as std::io::Read>::read", "<A as Read>::read"),
            (
                "<&mut alloc::vec::Vec<u8> as a::b::C>::d",
                "<&mut Vec<u8> as C>::d",
            ),
            (
                "<*const some::module::B as core::D>::e",
                "<*const B as D>::e",
            ),
            (
                "<(a::String, alloc::vec::Vec<u8>) as D>::e",
                "<(a::String, Vec<u8>) as D>::e",
            ),
        ] {
            assert_eq!(shorten_middle(name, 30), short);
            assert_eq!(shorten_middle(name, 99), name);
        }
        assert_eq!(shorten_middle("<a::b as c", 5), "<a… c");
    }

    #[test]
    fn arguments_of_templates_go_first() {
        let name =
            "void std::__introsort_loop<int*, long, __gnu_cxx::__ops::_Iter_less_iter>(int*, int*)";
        assert_eq!(
            shorten_middle(name, 48),
            "void std::__introsort_loop<…>(int*, int*)"
        );
        assert_eq!(shorten_middle(name, 40), "void std::__introsort_loop<…>(…)");
    }

    #[test]
    fn then_the_middle() {
        assert_eq!(shorten_middle("alpha_beta_gamma", 9), "alph…amma");
        assert_eq!(shorten_end("return a + b + c;", 10), "return a …");
    }

    #[test]
    fn what_a_function_is_in_goes_before_its_own_name() {
        let name = "crossbeam_deque::deque::Stealer<T>::steal";
        assert_eq!(shorten_middle(name, 30), "…::deque::Stealer<T>::steal");
        assert_eq!(shorten_middle(name, 24), "…::Stealer<T>::steal");
        assert_eq!(shorten_middle(name, 14), "…ler<T>::steal");
        assert_eq!(shorten_middle("deque::Stealer<T>::steal", 7), "…steal");
        let closure = "rg::search_parallel::{{closure}}";
        assert_eq!(
            shorten_middle(closure, 31),
            "…::search_parallel::{{closure}}"
        );
        assert_eq!(shorten_middle(closure, 14), "search_…sure}}");
        let nameless = "(anonymous namespace)::Name::value(std::map<int, int> const&) const";
        assert_eq!(shorten_middle(nameless, 21), "Name::value(…) const");
        assert_eq!(shorten_middle(nameless, 18), "…e::value(…) const");
    }

    #[test]
    fn it_is_never_longer_than_asked_for() {
        for name in [
            "a::b::c",
            "::::",
            "alpha::beta::{{closure}}::{{closure}}",
            "(anonymous namespace)::(anonymous namespace)::f()",
            "",
            "é<é>",
            "<<<>>>",
            "((((((((",
            "a<b<c<d<e>>>>(f)(g)",
            "operator<<(x)",
        ] {
            for most in 1..20 {
                assert!(
                    shorten_middle(name, most).chars().count() <= most,
                    "{name} {most}"
                );
                assert!(shorten_end(name, most).chars().count() <= most);
            }
        }
    }
}
