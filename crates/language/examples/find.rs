fn main() {
    for path in std::env::args().skip(1) {
        let bytes = std::fs::read(&path).unwrap();
        let t = std::time::Instant::now();
        let found = headcount_language::find(&bytes);
        match found {
            Some(Ok(it)) => {
                println!("{path}: {} {} {:?} {:?}", it.name, it.fetches.len(), it.frees, t.elapsed());
                let mut m = std::collections::BTreeMap::new();
                for f in &it.fetches { *m.entry(f.free).or_insert(0) += 1; }
                for (k, n) in m { println!("  {k:016b} {n}"); }
            }
            Some(Err(e)) => println!("{path}: refused: {e}"),
            None => println!("{path}: none {:?}", t.elapsed()),
        }
    }
}
