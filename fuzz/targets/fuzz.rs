//! One target under libFuzzer: the one that `DAYFLY_FUZZ_TARGET` names.

#![no_main]

use std::sync::LazyLock;

use dayfly_fuzz::Target;
use libfuzzer_sys::fuzz_target;

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("DAYFLY_FUZZ_TARGET").unwrap_or_default();
    dayfly_fuzz::target(&name).unwrap_or_else(|| panic!("there is no target '{name}'"))
});

fuzz_target!(|bytes: &[u8]| {
    (TARGET.run)(bytes);
});
