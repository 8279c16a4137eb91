//! The Icon program library.

use crate::oracle::{LIBRARY, difference, folder};

#[test]
fn the_whole_library_becomes_the_ucode_that_icont_makes() {
    let folder = folder("library");
    let mut names = Vec::new();
    for entry in std::fs::read_dir(LIBRARY).expect("the package icon-ipl is needed") {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        if name.ends_with(".icn") {
            std::fs::copy(&path, folder.join(&name)).unwrap();
            names.push(name);
        }
    }
    assert!(names.len() > 350, "only {} programs", names.len());
    let wrong: Vec<String> = names
        .iter()
        .filter_map(|name| Some(format!("{name}: {}", difference(&folder, name)?)))
        .collect();
    assert!(
        wrong.is_empty(),
        "{} of {} differ:\n{}",
        wrong.len(),
        names.len(),
        wrong.join("\n")
    );
}
