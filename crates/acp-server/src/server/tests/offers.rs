//! What the agent offers, and what it does not take.

use teamster_core::{ModelChoice, SlashCommand};

use super::*;

fn command(name: &str) -> Value {
    json!({"name": name, "description": "About it", "inputHint": "<what>"})
}

/// Returns the commands of the updates so far, one list for each update.
fn commands(editor: &mut Editor) -> Vec<Value> {
    let updates = editor.updates().into_iter();
    let updates = updates.map(|it| it["params"]["update"].clone());
    let of_commands = updates.filter(|it| it["sessionUpdate"] == "available_commands_update");
    of_commands
        .map(|it| it["availableCommands"].clone())
        .collect()
}

/// Adds the commands of this server.
fn with_builtin(commands: Value) -> Value {
    let mut all = commands.as_array().unwrap().clone();
    for command in builtin::commands(&[]) {
        let mut command = json!({"name": command.name, "description": command.description,
            "input": command.input_hint.map(|hint| json!({"hint": hint}))});
        command
            .as_object_mut()
            .unwrap()
            .retain(|_, it| !it.is_null());
        all.push(command);
    }
    json!(all)
}

#[test]
fn commands_follow_the_new_session_and_each_change() {
    let mut editor = Editor::new();
    editor.call(0, "initialize", json!({"protocolVersion": 1}));
    editor.call(1, "session/new", json!({"cwd": "/w", "mcpServers": []}));
    let Some(Action::Prepare { ticket, .. }) = editor.actions.pop() else {
        panic!();
    };
    let earlier = Offers::new().commands(vec![SlashCommand::new("init")]);
    editor.host(|server, out| server.prepared(ticket, Ok(earlier), out));
    let is_answer = |message: &Value| message["id"] == 1;
    assert!(
        is_answer(&editor.messages[1]),
        "its id comes before: {:#?}",
        editor.messages
    );
    let shown = with_builtin(json!([{"name": "init", "description": ""}]));
    assert_eq!(commands(&mut editor), [shown]);

    editor.prompt(2, "/init now");
    let Some(Action::Prompt { prompt, .. }) = editor.actions.pop() else {
        panic!();
    };
    assert_eq!(prompt.text, "/init now");
    let offers = json!({"type": "offers", "commands": [command("compact")]});
    editor.log(offers.clone());
    let shown =
        json!([{"name": "compact", "description": "About it", "input": {"hint": "<what>"}}]);
    assert_eq!(commands(&mut editor), [with_builtin(shown)]);
    editor.log(offers);
    assert_eq!(commands(&mut editor), Vec::<Value>::new());
    // A fallback is another agent.
    editor.log(
        json!({"type": "run:fallback", "runId": "s1.1", "delayMs": 0, "reason": {"message": "busy",
        "code": "CLI_ERROR", "kind": "overloaded", "retryable": true},
        "next": {"attempt": 2, "provider": "codex"}}),
    );
    assert_eq!(commands(&mut editor), [with_builtin(json!([]))]);
}

#[test]
fn offers_of_the_agent_before_the_first_prompt_are_shown() {
    let mut editor = Editor::with_session();
    let models = vec![ModelChoice::new("deep").name("Deep")];
    let offers = Offers::new()
        .commands(vec![SlashCommand::new("init")])
        .models(models);
    editor.host(|server, out| server.offered("s1", "codex", &offers, out));
    assert_eq!(editor.updates(), [""; 0], "it was another agent");
    editor.host(|server, out| server.offered("s1", "claude", &offers, out));
    let updates = editor.updates();
    let kinds: Vec<_> = updates
        .iter()
        .map(|it| it["params"]["update"]["sessionUpdate"].clone())
        .collect();
    assert_eq!(kinds, ["config_option_update", "available_commands_update"]);
    let options = &updates[0]["params"]["update"]["configOptions"];
    assert_eq!(options[1]["options"][1]["name"], "Deep", "{options}");
    // It was asked once.
    let later = Offers::new().commands(Vec::new());
    editor.host(|server, out| server.offered("s1", "claude", &later, out));
    assert_eq!(editor.updates(), [""; 0]);
}

#[test]
fn offers_reported_after_the_first_prompt_are_not_needed() {
    let mut editor = Editor::with_session();
    editor.prompt(2, "hi");
    editor.updates();
    let offers = Offers::new().commands(vec![SlashCommand::new("init")]);
    editor.host(|server, out| server.offered("s1", "claude", &offers, out));
    assert_eq!(editor.updates(), [""; 0]);
}

#[test]
fn another_agent_is_asked_too() {
    let mut other = claude();
    other.id = "codex".to_owned();
    let mut editor = Editor::with(Catalog::choice(vec![claude(), other]));
    editor.begin();
    let set = json!({"sessionId": "s1", "configId": "agent", "value": "codex"});
    editor.call(2, "session/set_config_option", set);
    let Some(Action::AskOffers { setup, .. }) = editor.actions.pop() else {
        panic!("{:?}", editor.actions);
    };
    assert_eq!(setup.agent.as_deref(), Some("codex"));
}

#[test]
fn a_loaded_session_is_asked_for_if_its_log_has_none() {
    for (line, is_asked) in [
        (json!({"type": "text", "text": "a"}), true),
        (json!({"type": "offers", "commands": [command("x")]}), false),
    ] {
        let mut editor = Editor::new();
        editor.call(0, "initialize", json!({"protocolVersion": 1}));
        let params = json!({"sessionId": "old", "cwd": "/w", "mcpServers": []});
        editor.call(1, "session/load", params);
        let Some(Action::Find { ticket, .. }) = editor.actions.pop() else {
            panic!("{:?}", editor.actions);
        };
        let mut entry = json!({"seq": 1, "atMs": 1, "attempt": 1});
        let fields = line.as_object().unwrap().clone();
        entry.as_object_mut().unwrap().extend(fields);
        let entry: RunLogEntry = serde_json::from_value(entry).unwrap();
        let found = Found::new("claude", None, vec![entry]);
        editor.host(|server, out| server.found(ticket, Ok(found), out));
        let asked = editor.actions.pop();
        let has_asked = matches!(asked, Some(Action::AskOffers { .. }));
        assert_eq!(has_asked, is_asked, "{line}: {asked:?}");
    }
}

#[test]
fn an_agent_to_which_they_are_text_has_no_commands_of_its_own() {
    let mut agent = claude();
    agent.commands = false;
    let mut editor = Editor::with(Catalog::one(agent));
    editor.begin();
    editor.log(json!({"type": "offers", "commands": [command("compact")]}));
    assert_eq!(commands(&mut editor), Vec::<Value>::new());
}

#[test]
fn a_loaded_session_has_its_commands_once() {
    let mut editor = Editor::with_session();
    editor.call(
        2,
        "session/load",
        json!({"sessionId": "old", "cwd": "/w", "mcpServers": []}),
    );
    let Some(Action::Find { ticket, .. }) = editor.actions.pop() else {
        panic!();
    };
    let entry = |seq: u64, name: &str| -> RunLogEntry {
        let line = json!({"seq": seq, "atMs": 1, "attempt": 1, "type": "offers",
                          "commands": [command(name)]});
        serde_json::from_value(line).unwrap()
    };
    let found = Found::new("claude", None, vec![entry(1, "old"), entry(2, "new")]);
    editor.host(|server, out| server.found(ticket, Ok(found), out));
    let last = editor.messages.last().unwrap();
    assert_eq!(
        last["params"]["update"]["sessionUpdate"],
        "available_commands_update"
    );
    let shown = commands(&mut editor);
    assert_eq!(shown.len(), 1);
    assert_eq!(shown[0][0]["name"], "new");
}

#[test]
fn models_and_efforts_of_the_agent_replace_those_of_the_history() {
    let mut editor = Editor::with_session();
    editor.prompt(2, "hi");
    editor.updates();
    editor.log(json!({"type": "offers", "models": [
        {"id": "sonnet", "name": "Sonnet", "description": "For routine tasks", "efforts": ["low", "max"],
         "effortDescriptions": {"low": "Fast responses"}},
        {"id": "haiku", "name": "Haiku"}]}));
    let update = editor.updates()[0]["params"]["update"].clone();
    assert_eq!(update["sessionUpdate"], "config_option_update");
    let values = |option: &Value| {
        let values = option["options"].as_array().unwrap().iter();
        values
            .map(|it| it["value"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    let options = &update["configOptions"];
    assert_eq!(
        options[1]["options"][1],
        json!({"value": "sonnet", "name": "Sonnet", "description": "For routine tasks"})
    );
    assert_eq!(values(&options[1]), ["default", "sonnet", "haiku"]);
    assert_eq!(values(&options[2]), ["default", "low", "max"]);
    // The agent's text, else one of this crate.
    let about = |i: usize| options[2]["options"][i]["description"].clone();
    assert_eq!(about(1), "Fast responses");
    assert_eq!(about(2), "As much as the model can: the slowest");
    // This model has no efforts.
    editor.call(
        3,
        "session/set_config_option",
        json!({"sessionId": "s1", "configId": "model", "value": "haiku"}),
    );
    let options = editor.answer(3)["result"]["configOptions"].clone();
    let ids = options
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].clone());
    assert_eq!(ids.collect::<Vec<_>>(), ["mode", "model"]);
}

#[test]
fn efforts_are_only_offered_by_an_agent_that_takes_them() {
    let mut agent = claude();
    agent.efforts.clear();
    let mut editor = Editor::with(Catalog::one(agent));
    editor.begin();
    editor.log(
        json!({"type": "offers", "efforts": ["off", "on"], "models": [
        ModelChoice::new("a")]}),
    );
    let update = editor.updates()[0]["params"]["update"].clone();
    assert_eq!(
        update["configOptions"].as_array().unwrap().len(),
        2,
        "{update}"
    );
}

#[test]
fn input_that_the_agent_does_not_take_is_left_out() {
    let mut agent = claude();
    agent.images = false;
    let mut editor = Editor::with(Catalog::one(agent));
    let notices = json!({"protocolVersion": 1, "clientCapabilities": {"session": {"notices": {}}}});
    editor.call(0, "initialize", notices);
    let servers = json!([
        {"type": "quic", "name": "far", "url": "https://example.com"},
        {"type": "http", "name": "web", "url": "https://example.com", "headers": []}]);
    editor.call(
        1,
        "session/new",
        json!({"cwd": "/w", "mcpServers": servers}),
    );
    let Some(Action::Prepare { ticket, setup, .. }) = editor.actions.pop() else {
        panic!("{:?}", editor.messages);
    };
    let names: Vec<_> = setup.mcp_servers.iter().map(|it| &*it.name).collect();
    assert_eq!(names, ["web"]);
    editor.host(|server, out| server.prepared(ticket, Ok(Offers::new()), out));
    assert!(editor.answer(1)["result"].is_object());
    let blocks = json!([
        {"type": "audio", "mimeType": "audio/wav", "data": ""},
        {"type": "image", "mimeType": "image/png", "data": "aGk="},
        {"type": "text", "text": "Hello"}]);
    editor.call(
        2,
        "session/prompt",
        json!({"sessionId": "s1", "prompt": blocks}),
    );
    let Some(Action::Prompt { prompt, .. }) = editor.actions.pop() else {
        panic!("{:?}", editor.messages);
    };
    assert_eq!((&*prompt.text, prompt.images.len()), ("Hello", 0));
    let shown: Vec<_> = (editor.updates().iter())
        .map(|it| it["params"]["update"].clone())
        .filter(|it| it["sessionUpdate"] == "notice")
        .map(|it| it["description"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(shown.len(), 3, "{shown:?}");
    assert!(
        shown[0].starts_with("the MCP server far is left out: its type quic"),
        "{shown:?}"
    );
    assert_eq!(shown[1], "audio is left out");
    assert_eq!(shown[2], "images are left out: Claude Code takes none");
}
