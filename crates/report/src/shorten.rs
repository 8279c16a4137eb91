//! Long names and texts in little room.

/// What stands for what is left out.
const LEFT_OUT: char = '…';

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

/// A name of at most so many characters: first the arguments of templates are left out, the innermost
/// first, then the middle.
pub fn shorten_middle(name: &str, most: usize) -> String {
    let mut name = name.to_owned();
    while name.chars().count() > most {
        match without_innermost(&name) {
            Some(shorter) => name = shorter,
            None => break,
        }
    }
    let length = name.chars().count();
    if length <= most {
        return name;
    }
    let kept = most.saturating_sub(1);
    let (front, back) = (kept - kept / 2, kept / 2);
    let front = name.chars().take(front);
    let back = name.chars().skip(length - back);
    front.chain([LEFT_OUT]).chain(back).collect()
}

/// Without the longest of the innermost `<...>` and `(...)`.
fn without_innermost(name: &str) -> Option<String> {
    let mut open = None;
    let mut longest: Option<(usize, usize)> = None;
    for (at, c) in name.char_indices() {
        match (c, open) {
            ('<' | '(', _) => open = Some(at + 1),
            ('>' | ')', Some(begin)) => {
                let is_longer = longest.is_none_or(|(from, to)| at - begin > to - from);
                if at > begin + LEFT_OUT.len_utf8() && is_longer {
                    longest = Some((begin, at));
                }
                open = None;
            }
            _ => (),
        }
    }
    let (from, to) = longest?;
    Some(format!("{}{LEFT_OUT}{}", &name[..from], &name[to..]))
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
        let shortened = shorten_middle("alpha::beta::gamma::delta::epsilon", 15);
        assert_eq!(shortened, "alpha::…epsilon");
        assert_eq!(shorten_end("return a + b + c;", 10), "return a …");
    }

    #[test]
    fn it_is_never_longer_than_asked_for() {
        for name in [
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
