//! Lets the unit tests link.

fn main() {
    // A test binary has no server around it, and a library for the server leaves its symbols open in any case. The tests
    // that need them run inside a server (`cargo pgrx test`), where every symbol is there.
    println!("cargo::rustc-link-arg=-Wl,--unresolved-symbols=ignore-all");
    println!("cargo::rerun-if-changed=build.rs");
}
