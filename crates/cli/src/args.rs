use std::path::PathBuf;
#[derive(Default)]
pub struct CollectArgs {
    pub dirs: Vec<PathBuf>,
    pub output: Option<PathBuf>,
    pub running: Option<u32>,
    pub core: Option<PathBuf>,
    pub program: Option<PathBuf>,
    pub keep: bool,
}
