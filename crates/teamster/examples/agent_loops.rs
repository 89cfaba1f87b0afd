//! Runs the loops of all agents of a configuration in this process until Ctrl-C.
//!
//! ```sh
//! cargo run -p teamster --features loop --example agent_loops -- agents.config.json
//! ```
#![expect(clippy::print_stderr, reason = "an example shows what it does")]

use std::error::Error;

use teamster::agent_loop::LoopBuilder;
use teamster::agent_loop::supervisor::Config;
use tokio::task::JoinSet;

#[tokio::main]
async fn main() -> Result<(), Box<dyn Error>> {
    let file = std::env::args().nth(1);
    let config = Config::read(file.as_deref().unwrap_or("agents.config.json").as_ref())?;
    let mut loops = JoinSet::new();
    let mut controls = Vec::new();
    for agent in &config.agents {
        let prepared = LoopBuilder::of_agent(agent).build().await?;
        controls.push(prepared.control);
        loops.spawn(prepared.agent_loop.run());
    }
    tokio::signal::ctrl_c().await?;
    for control in controls {
        control.stop();
    }
    while let Some(ended) = loops.join_next().await {
        if let Err(error) = ended? {
            eprintln!("{}", error.message);
        }
    }
    Ok(())
}
