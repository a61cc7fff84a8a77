//! Takes the sample out of docs/sdks.md, so that a test can run it as the page has it.

use std::path::Path;
use std::{env, fs};

const PAGE: &str = "../../../docs/sdks.md";

fn main() {
    println!("cargo::rerun-if-changed={PAGE}");
    let page = fs::read_to_string(PAGE).unwrap();
    let (_, rest) = page.split_once("```rust\n").expect("The page has a sample in Rust.");
    let (sample, _) = rest.split_once("```").unwrap();
    fs::write(Path::new(&env::var("OUT_DIR").unwrap()).join("sample.rs"), sample).unwrap();
}
