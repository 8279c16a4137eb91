//! Programs that interpreters run: every line as often as the language's own tracer says.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use crate::common::{Said, Workshop};

const PYTHON: &str = "/usr/bin/python3.11";
