//! Sets `cfg(repository)`. Published packages lack this file, so code that needs other files of the repository
//! is left out there.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=repository");
}
