//! Sets `cfg(repository)`. Published packages omit this file, and with it everything that needs other files of the
//! repository: recordings and pages.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=repository");
}
