//! What a session offers, how full its context is, and output of commands that are running.

use std::collections::BTreeMap;

use serde_json::value::RawValue;
use teamster_core::provider::Events;
use teamster_core::provider::json_line::{parse, value};
use teamster_core::{ContextUse, ModelChoice, Offers, SlashCommand, ToolKind};

use super::AcpProtocol;
use crate::peer;
use crate::wire::{CallUpdate, CommandLine, Commands, ConfigOption, Models, Update, list_of};

impl AcpProtocol {
    /// Takes the agent's commands. An update without a list of them changes nothing.
    pub(super) fn commands_are(&mut self, raw: &RawValue, out: &mut Events) {
        let update: Option<Commands<'_>> = parse(raw.get());
        let Some(lines) = update.and_then(|it| list_of::<CommandLine>(it.available_commands?))
        else {
            return;
        };
        let commands = lines.into_iter().map(|line| {
            SlashCommand::new(line.name)
                .description(filled(line.description))
                .input_hint(line.input.and_then(|input| filled(input.hint)))
        });
        self.offered(&Offers::new().commands(commands.collect::<Vec<_>>()), out);
    }

    /// Takes the models and efforts of a session.
    pub(super) fn options_offered(
        &mut self,
        models: Option<&Models>,
        options: &[ConfigOption],
        out: &mut Events,
    ) {
        let option = |category: &str| {
            let mut options = options.iter();
            options.find(|option| option.category.as_deref() == Some(category))
        };
        let of_option = option("model").map(|option| {
            let values = option.values().filter_map(|line| {
                let model = ModelChoice::new(line.value.clone()?);
                Some(
                    model
                        .name(line.name.clone())
                        .description(line.description.clone()),
                )
            });
            values.collect::<Vec<_>>()
        });
        let of_models = models.map(|models| {
            let models = models.available_models.iter().map(|line| {
                ModelChoice::new(line.model_id.clone())
                    .name(line.name.clone())
                    .description(line.description.clone())
            });
            models.collect::<Vec<_>>()
        });
        let (mut efforts, mut described) = (Vec::new(), BTreeMap::new());
        for line in option("thought_level").iter().flat_map(|it| it.values()) {
            let Some(effort) = line.value.clone() else {
                continue;
            };
            if let Some(text) = filled(line.description.clone()) {
                described.insert(effort.clone(), text);
            }
            efforts.push(effort);
        }
        let models = of_models.or(of_option).filter(|models| !models.is_empty());
        let offers = Offers::new()
            .models(models)
            .efforts(Some(efforts).filter(|efforts| !efforts.is_empty()))
            .effort_descriptions(described);
        self.offered(&offers, out);
    }

    /// Reports what the session offers, if it has changed. A run does not.
    fn offered(&mut self, change: &Offers, out: &mut Events) {
        let before = self.offers_reported.clone();
        self.offers_reported.update(change);
        if self.offers_reported != before && self.session.is_some() {
            self.report_offers(out);
        }
    }

    /// Reports what is known of the session's offers.
    pub(super) fn report_offers(&self, out: &mut Events) {
        if !self.settings.one_turn && !self.offers_reported.is_empty() {
            out.push(self.offers_reported.clone());
        }
    }

    /// Reports how full the context is, in a session.
    pub(super) fn context(&self, update: &Update<'_>, out: &mut Events) {
        if let (Some(used), Some(size)) = (update.used, update.size)
            && size > 0
            && !self.settings.one_turn
        {
            out.push(ContextUse::new(used, size));
        }
    }

    /// Reports new output of a command that is running, in a session.
    pub(super) fn live_output(&mut self, cli_id: &str, update: &CallUpdate<'_>, out: &mut Events) {
        if self.settings.one_turn {
            return;
        }
        let Some(open) = self.turn.find(cli_id) else {
            return;
        };
        let (Some(id), Some(tool)) = (&open.id, &open.call.tool) else {
            return;
        };
        let meta = update.meta.map(value).unwrap_or_default();
        if let Some(piece) = peer::live_output(&meta) {
            self.live.piece(id, piece, out);
        } else if tool.kind == ToolKind::Execute && !tool.sub_agent {
            let text = open.call.text();
            self.live.so_far(id, unfenced(&text), out);
        }
    }
}

fn filled(text: Option<String>) -> Option<String> {
    text.filter(|text| !text.trim().is_empty())
}

/// Returns the content of a text that is one code block of Markdown; any other text unchanged.
fn unfenced(text: &str) -> &str {
    let rest = text.trim_start_matches('`');
    let fence = &text[..text.len() - rest.len()];
    if fence.len() < 3 {
        return text;
    }
    let Some((_, body)) = rest.split_once('\n') else {
        return text;
    };
    let body = body.trim_end();
    match body.strip_suffix(fence) {
        Some(body) => body.strip_suffix('\n').unwrap_or(body),
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_in_a_code_block_is_the_output() {
        for (text, output) in [
            ("one\ntwo\n", "one\ntwo\n"),
            ("```console\none\n```", "one"),
            ("````\n```\nx\n````\n", "```\nx"),
            ("```", "```"),
            ("```\nnot ended", "```\nnot ended"),
        ] {
            assert_eq!(unfenced(text), output, "{text}");
        }
    }
}
