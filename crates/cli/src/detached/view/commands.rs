//! Effects of typed commands.

use anyhow::anyhow;
use teamster::ModelChoice;
use teamster_api::{Command as RunCommand, ProblemCode};

use super::View;
use crate::detached::owner::Owner;
use crate::detached::questions::Reader;
use crate::dialog::command::{self, Command};
use crate::dialog::{images, offered};
use crate::{completion, hints, words};

impl View {
    /// Executes a typed command.
    pub(super) async fn execute(&mut self, command: Command, reader: &mut Reader) {
        let command = match (command, &self.owner) {
            (Command::Help, Some(_)) => {
                let help = command::help() + &offered::commands_help();
                return self.screen.print(&help);
            }
            (Command::Help, None) => return self.screen.print(&command::attached_help()),
            (Command::Cost, Some(owner)) => return self.screen.print(&owner.totals.show()),
            (Command::Session, Some(owner)) => return self.screen.print(&owner.session()),
            (Command::Cost | Command::Session, None) => return self.show_status().await,
            (Command::Clear, _) => RunCommand::Clear,
            (Command::Image(Some(file)), _) => return self.add_image(&file),
            (Command::Image(None), _) => {
                let count = words::plural(self.images.len() as u64, "image");
                self.images.clear();
                return self.screen.print(&format!("{count} removed"));
            }
            (Command::Model(None), _) => return self.list_models(reader).await,
            (Command::Model(Some(model)), _) => RunCommand::SetModel {
                model: self.model_of(model),
            },
            (Command::Permission(mode), _) => RunCommand::SetPermission { mode },
            (Command::End | Command::Quit, _) => RunCommand::Cancel { kill: false },
        };
        if let Some(why) = self.owner.as_ref().and_then(|it| it.refusal(&command)) {
            return self.screen.report(&anyhow!(why));
        }
        let sent = self.run.handle.send(command.clone());
        let done = tokio::select! {
            biased;
            done = reader.meanwhile(sent) => done,
            _ = self.signals.next(), if self.owner.is_some() => {
                if !self.signals.has_ended() {
                    let why = "interrupted: the command may have been carried out";
                    self.screen.report(&anyhow!(why));
                }
                return;
            }
        };
        match (done, command) {
            // The log shows it.
            (Err(error), _) if error.code == Some(ProblemCode::RunEnded) => {}
            (Err(error), _) => self.screen.report(&hints::usage(error)),
            (Ok(_), _) if self.owner.is_none() => {}
            (Ok(_), RunCommand::SetModel { model }) => {
                let model = words::one_line(&model);
                (self.screen).print(&format!("model from the next turn on: {model}"));
            }
            (Ok(_), RunCommand::SetPermission { mode }) => {
                (self.screen).print(&format!("permission from the next turn on: {mode}"));
            }
            (Ok(_), _) => {
                self.screen.clear_session();
                self.screen.print("a new session begins");
            }
        }
    }

    fn add_image(&mut self, file: &str) {
        if let Some(why) = self.owner.as_ref().and_then(Owner::no_images) {
            return self.screen.report(&anyhow!(why));
        }
        let image =
            images::read(file).and_then(|image| match images::refusal(&self.images, &image) {
                Some(why) => Err(anyhow!(why)),
                None => Ok(image),
            });
        match image {
            Ok(image) => {
                self.screen.print(&images::added(file, &image));
                self.images.push(image);
            }
            Err(error) => self.screen.report(&error),
        }
    }

    /// Prints how to send a message without its images, if it has some.
    pub(super) fn remark_images(&mut self) {
        if !self.images.is_empty() {
            let count = words::plural(self.images.len() as u64, "image");
            (self.screen).print(&format!(
                "{count} kept for the next message: `/image` removes all"
            ));
        }
    }

    async fn list_models(&mut self, reader: &mut Reader) {
        let offered = offered::models();
        if !offered.is_empty() {
            let about = |model: &ModelChoice| model.name.clone().or(model.description.clone());
            let lines: Vec<_> = (offered.iter())
                .map(|model| (model.id.clone(), about(model).unwrap_or_default()))
                .collect();
            self.models = offered.into_iter().map(|model| model.id).collect();
            return self.screen.print(&models_text("models", &lines));
        }
        let agent = &self.run.info.provider;
        self.models = reader.meanwhile(completion::models_of(agent)).await;
        let lines: Vec<_> = (self.models.iter())
            .map(|model| (model.clone(), String::new()))
            .collect();
        self.screen
            .print(&models_text("models of earlier runs, newest first", &lines));
    }

    /// Returns the model with this number in the list, or the name.
    fn model_of(&self, typed: String) -> String {
        let number = typed.parse::<usize>().ok();
        let listed = number.and_then(|number| self.models.get(number.checked_sub(1)?));
        listed.cloned().unwrap_or(typed)
    }

    async fn show_status(&mut self) {
        match self.run.handle.status().await {
            Ok(status) => {
                let session = status.session_id.as_deref().map(words::one_line);
                let cost = words::cost_of(status.cost_usd, status.cost_source);
                let tokens = status.usage.as_ref().and_then(words::tokens);
                self.screen.print(&format!(
                    "{}, {}, {}\nsession {}",
                    words::plural(status.turns, "turn"),
                    tokens.as_deref().unwrap_or("tokens not reported"),
                    cost.as_deref().unwrap_or("cost unknown"),
                    session.as_deref().unwrap_or("not started")
                ));
            }
            // The log shows it.
            Err(error) if error.code == Some(ProblemCode::RunEnded) => {}
            Err(error) => self.screen.report(&error.into()),
        }
    }
}

/// Returns the list of models, each with its name in the CLI.
fn models_text(title: &str, models: &[(String, String)]) -> String {
    if models.is_empty() {
        return "no earlier run has named a model: `/model NAME` takes what the agent's CLI takes"
            .to_owned();
    }
    let line = |(i, (model, about)): (usize, &(String, String))| {
        let (model, about) = (words::one_line(model), words::one_line(about));
        let about = if about == model { "" } else { &about };
        let line = format!("  {:>2}  {model}  {about}", i + 1);
        line.trim_end().to_owned()
    };
    let lines: Vec<_> = models.iter().enumerate().map(line).collect();
    format!(
        "{title}:\n{}\nchoose one with `/model NUMBER`, or any other with `/model NAME`",
        lines.join("\n")
    )
}
