//! The sample of docs/sdks.md, as the page has it.

include!(concat!(env!("OUT_DIR"), "/sample.rs"));
