//! Commands, models and thinking levels that the CLI offers.

use serde_json::{Value, json};
use teamster_core::provider::OffersProtocol;
use teamster_core::provider::json_line::{self, parse};
use teamster_core::{ModelChoice, Offers, SessionOptions, SlashCommand};

use super::wire::Response;
use super::{PiSession, Purpose};

const COMMANDS: &str = "get_commands";
const MODELS: &str = "get_available_models";
const LEVELS: &str = "get_available_thinking_levels";

impl PiSession {
    /// Asks for what the session offers.
    pub(super) fn ask_offers(&mut self) {
        if !self.has_offers {
            return;
        }
        if self.slash_commands {
            self.ask(Purpose::Offers, json!({"type": COMMANDS}));
        }
        self.ask_named(MODELS);
        self.ask_named(LEVELS);
    }

    /// Asks for the thinking levels, which are those of the model.
    pub(super) fn ask_levels(&mut self) {
        if self.has_offers {
            self.ask_named(LEVELS);
        }
    }

    /// Asks with the command's name as its id. Other commands have numbers.
    fn ask_named(&mut self, command: &str) {
        self.outbox.write(&request(command));
        self.pending.insert(command.to_owned(), Purpose::Offers);
    }
}

/// Creates the protocol of a process that is only asked what a session would offer.
pub(super) fn query(options: &SessionOptions) -> OffersProtocol {
    let commands = options.params.slash_commands.then_some(COMMANDS);
    let asked: Vec<_> = commands.into_iter().chain([MODELS, LEVELS]).collect();
    let messages: Vec<_> = asked.iter().map(|command| request(command)).collect();
    OffersProtocol::new(&messages, messages.len(), move |line| {
        let response: Response = json_line::read(line, |text| {
            parse(text).filter(|it: &Response| asked.contains(&&*it.id))
        })?;
        Some(offered(response))
    })
}

fn request(command: &str) -> Value {
    json!({"type": command, "id": command})
}

/// Returns what a response offers: nothing if a version refuses the request.
pub(super) fn offered(response: Response) -> Offers {
    let data = response.data;
    if !response.success {
        return Offers::new();
    }
    match &*response.command {
        COMMANDS => {
            let commands = data.commands.into_iter().filter(|it| !it.name.is_empty());
            let commands =
                commands.map(|it| SlashCommand::new(it.name).description(it.description));
            Offers::new().commands(commands.collect::<Vec<_>>())
        }
        MODELS => {
            let models = data.models.into_iter().filter(|it| !it.id.is_empty());
            let models = models.map(|it| {
                // As the CLI takes it.
                ModelChoice::new(format!("{}/{}", it.provider, it.id)).name(it.name)
            });
            let models: Vec<_> = models.collect();
            Offers::new().models(Some(models).filter(|it| !it.is_empty()))
        }
        LEVELS => Offers::new().efforts(Some(data.levels).filter(|it| !it.is_empty())),
        _ => Offers::new(),
    }
}
