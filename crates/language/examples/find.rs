fn main() {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path).unwrap();
        let t = std::time::Instant::now();
        let found = headcount_language::find(&bytes);
        match found {
            Some(Ok(it)) => println!("{path}: {} {} {:?} {:?}", it.name, it.fetches.len(), it.frees, t.elapsed()),
            Some(Err(e)) => println!("{path}: refused: {e}"),
            None => println!("{path}: none {:?}", t.elapsed()),
        }
    }
}
