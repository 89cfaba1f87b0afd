//! Plays a script on a port until it is stopped: `cargo run -p teamster-mock-model --example play -- SCRIPT
//! [PORT]`. `teamster mock-model` is the complete program.
#![allow(clippy::print_stdout)]

use std::path::Path;

use teamster_mock_model::{MockModel, MockModelSettings, Script};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let script = args.next().ok_or("which script?")?;
    let mut settings = MockModelSettings::default();
    settings.port = args.next().unwrap_or_default().parse().unwrap_or(0);
    settings.directory = Some(std::env::current_dir()?);
    let model = MockModel::start_with(Script::read(Path::new(&script))?, settings).await?;
    println!("{}", model.url());
    for count in 1.. {
        model.wait_for_requests(count).await;
        if let Some(request) = model.requests_from(count - 1).first() {
            println!("{request:?}");
        }
    }
    Ok(())
}
