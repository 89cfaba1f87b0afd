//! Options and modes that editors set.

use super::*;

/// Zed builds its pickers from the options only, and expects all options in the response to a change.
#[test]
fn setting_an_option_gives_all_of_them_back() {
    let mut editor = Editor::new();
    editor.call(0, "initialize", json!({"protocolVersion": 1}));
    let begun = editor.begin();
    let categories = |options: &Value| {
        let options = options.as_array().unwrap().iter();
        options
            .map(|it| it["category"].as_str().unwrap_or("").to_owned())
            .collect::<Vec<_>>()
    };
    let expected = ["mode", "model", "thought_level"];
    assert_eq!(categories(&begun["result"]["configOptions"]), expected);
    assert_eq!(begun["result"]["modes"]["currentModeId"], "default");

    let set =
        |option: &str, value: &str| json!({"sessionId": "s1", "configId": option, "value": value});
    editor.call(2, "session/set_config_option", set("model", "opus"));
    let options = editor.answer(2)["result"]["configOptions"].clone();
    assert_eq!(categories(&options), expected);
    assert_eq!(options[1]["currentValue"], "opus");
    editor.call(3, "session/set_config_option", set("mode", "accept-edits"));
    editor.answer(3);
    assert_eq!(
        editor.updates()[0]["params"]["update"],
        json!({"sessionUpdate": "current_mode_update", "currentModeId": "accept-edits"})
    );
    editor.call(4, "session/set_config_option", set("thought_level", "high"));
    // No action before the first prompt, which carries the settings.
    assert_eq!(editor.actions, []);
    editor.prompt(5, "hi");
    let Some(Action::Prompt { setup, .. }) = editor.actions.pop() else {
        panic!();
    };
    assert_eq!(setup.settings.model.as_deref(), Some("opus"));
    assert_eq!(setup.settings.effort.as_deref(), Some("high"));
    assert_eq!(setup.settings.mode, PermissionMode::AcceptEdits);

    editor.call(6, "session/set_config_option", set("model", "default"));
    let Some(Action::Apply { setup, .. }) = editor.actions.pop() else {
        panic!();
    };
    assert_eq!(setup.settings.model, None);
    editor.call(7, "session/set_config_option", set("mode", "x"));
    assert_eq!(editor.answer(7)["error"]["code"], -32602);
}

/// An editor may set options of other agents, such as those of its own settings.
#[test]
fn an_option_that_is_not_there_is_left_out_with_a_notice() {
    let mut editor = Editor::with_session();
    let text = json!({"sessionId": "s1", "configId": "sandbox", "value": "strict"});
    let boolean = json!({"sessionId": "s1", "configId": "web", "type": "boolean", "value": true});
    let agent = json!({"sessionId": "s1", "configId": "agent", "value": "codex"});
    for (set, name) in [(text, "sandbox"), (boolean, "web"), (agent, "agent")] {
        editor.call(2, "session/set_config_option", set);
        let options = editor.answer(2)["result"]["configOptions"].clone();
        assert_eq!(options.as_array().unwrap().len(), 3, "{options}");
        let update = editor.updates()[0]["params"]["update"].clone();
        let shown = update["content"]["text"].as_str().unwrap();
        let expected = format!("the option {name} is left out");
        assert!(shown.contains(&expected), "{shown}");
    }
    assert_eq!(editor.actions, []);
}

/// Editors without support for session options use `session/set_mode`.
#[test]
fn the_mode_can_be_set_the_old_way() {
    let mut editor = Editor::with_session();
    editor.call(
        2,
        "session/set_mode",
        json!({"sessionId": "s1", "modeId": "read-only"}),
    );
    assert!(editor.answer(2)["result"].is_object());
    let update = editor.updates()[0]["params"]["update"].clone();
    assert_eq!(update["sessionUpdate"], "config_option_update");
    assert_eq!(update["configOptions"][0]["currentValue"], "read-only");
}

#[test]
fn an_agent_that_leaves_its_plan_mode_is_in_another_one() {
    let mut agent = claude();
    agent.modes.push(PermissionMode::Plan);
    agent.settings.mode = PermissionMode::Plan;
    let mut editor = Editor::with(Catalog::one(agent));
    let client = json!({"protocolVersion": 1, "clientInfo": {"name": "zed", "version": "1"}});
    editor.call(0, "initialize", client);
    let begun = editor.begin();
    assert_eq!(begun["result"]["modes"]["currentModeId"], "plan");
    editor.prompt(2, "hi");
    editor.turn("s1.1");
    editor.updates();
    editor.log(json!({"type": "permission_mode", "mode": "default"}));
    let updates = editor.updates();
    assert_eq!(
        updates[0]["params"]["update"],
        json!({"sessionUpdate": "current_mode_update", "currentModeId": "default"})
    );
    let options = &updates[1]["params"]["update"]["configOptions"];
    assert_eq!(options[0]["currentValue"], "default");
    // The next prompt has it too.
    editor.done("s1.1", json!({}));
    editor.prompt(3, "go on");
    let Some(Action::Prompt { setup, .. }) = editor.actions.pop() else {
        panic!();
    };
    assert_eq!(setup.settings.mode, PermissionMode::Default);
}

#[test]
fn without_a_name_the_agent_is_an_option_until_the_first_prompt() {
    let mut codex = AgentEntry::new("codex", "Codex");
    codex.settings.model = Some("gpt".to_owned());
    let mut editor = Editor::with(Catalog::choice(vec![claude(), codex]));
    editor.call(0, "initialize", json!({"protocolVersion": 1}));
    let begun = editor.begin();
    let agent = &begun["result"]["configOptions"][0];
    assert_eq!(
        (&agent["id"], &agent["currentValue"]),
        (&json!("agent"), &json!("claude"))
    );
    assert_eq!(agent["options"].as_array().unwrap().len(), 2);
    let set = |id: &str| json!({"sessionId": "s1", "configId": "agent", "value": id});
    editor.call(2, "session/set_config_option", set("codex"));
    let options = editor.answer(2)["result"]["configOptions"].clone();
    // Codex has a single mode here, so there is no mode option.
    let ids: Vec<_> = options
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].clone())
        .collect();
    assert_eq!(ids, ["agent", "model"]);
    editor.prompt(3, "hi");
    let Some(Action::Prompt { setup, .. }) = editor.actions.pop() else {
        panic!();
    };
    assert_eq!(setup.agent.as_deref(), Some("codex"));
    assert_eq!(setup.settings.model.as_deref(), Some("gpt"));
    let update = editor.updates()[0]["params"]["update"].clone();
    assert_eq!(
        update["configOptions"][0]["options"]
            .as_array()
            .unwrap()
            .len(),
        1
    );
    editor.call(4, "session/set_config_option", set("claude"));
    assert!(
        editor.answer(4)["error"]["message"]
            .as_str()
            .unwrap()
            .contains("new session")
    );
}

#[test]
fn the_reported_model_is_in_the_options() {
    let mut editor = Editor::with_session();
    editor.prompt(2, "hi");
    editor.turn("s1.1");
    editor.updates();
    editor.log(json!({"type": "session", "sessionId": "own", "model": "claude-x"}));
    let update = editor.updates()[0]["params"]["update"].clone();
    assert_eq!(update["sessionUpdate"], "config_option_update");
    assert_eq!(
        update["configOptions"][1]["options"][0]["name"],
        "Default (claude-x)"
    );
}
