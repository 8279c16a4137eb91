#[inline(never)]
fn deep(level: u32) -> u32 {
    match level {
        0 => panic!("at the bottom"),
        _ => deep(level - 1) + 1,
    }
}

fn main() {
    let caught = std::panic::catch_unwind(|| deep(5));
    println!("{}", caught.is_err());
}
