//! Sets `cfg(repository)`. Published packages leave this file out, and with it what needs other files of the
//! repository: recordings and pages.

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rustc-cfg=repository");
}
