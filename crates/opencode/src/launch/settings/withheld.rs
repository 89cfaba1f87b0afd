//! Tools that a run's settings withhold from the model.

use serde_json::{Map, Value};
use teamster_core::ExecuteParams;

use super::{QUESTIONS, Settings, permission_of};

/// Tools withheld by the settings in a run's environment. The user's files are not read.
#[derive(Debug, Default)]
pub(crate) struct Withheld {
    /// Patterns for names of permissions, and true if they withhold the tool. The last match applies.
    rules: Vec<(String, bool)>,
}

impl Withheld {
    /// Returns the rules of a run with these parameters, or none if it cannot be started.
    pub(crate) fn of(params: &ExecuteParams) -> Self {
        Settings::new(params).map_or_else(|_| Self::default(), |settings| settings.withheld())
    }

    /// Returns whether this tool is withheld. A rule for all tools only counts if the tool is known to exist.
    pub(crate) fn has(&self, tool: &str, is_known: bool) -> bool {
        let permission = permission_of(tool);
        let mut rules = self.rules.iter().rev();
        // That a run cannot ask a user is no denial.
        !QUESTIONS.contains(&tool)
            && rules
                .find(|(pattern, _)| matches(permission, pattern))
                .is_some_and(|(pattern, is_denied)| {
                    *is_denied && (is_known || pattern.bytes().any(|b| b != b'*'))
                })
    }
}

impl Settings {
    fn withheld(&self) -> Withheld {
        let mut all = permissions_in(&self.config);
        merge(&mut all, &self.permission);
        let name = self.agent.as_deref().unwrap_or("build");
        let mut agent = Map::new();
        for key in ["agent", "mode"] {
            let of_agents = self.config.get(key);
            if let Some(Value::Object(settings)) = of_agents.and_then(|all| all.get(name)) {
                merge(&mut agent, settings);
            }
        }
        let agent = permissions_in(&agent);
        let rules = all.iter().chain(&agent).filter_map(rule);
        Withheld {
            rules: rules.collect(),
        }
    }
}

/// Returns the rules in a configuration or in an agent's settings, those under the old key `tools` first.
fn permissions_in(settings: &Map<String, Value>) -> Map<String, Value> {
    let mut found = Map::new();
    if let Some(Value::Object(tools)) = settings.get("tools") {
        for (tool, is_on) in tools {
            let action = if is_on == false { "deny" } else { "allow" };
            found.insert(permission_of(tool).to_owned(), action.into());
        }
    }
    match settings.get("permission") {
        Some(Value::Object(permission)) => merge(&mut found, permission),
        Some(action @ Value::String(_)) => {
            found.insert("*".into(), action.clone());
        }
        _ => {}
    }
    found
}

/// Merges like the CLI: an existing key keeps its position.
fn merge(into: &mut Map<String, Value>, over: &Map<String, Value>) {
    for (key, value) in over {
        match (into.get_mut(key), value) {
            (Some(Value::Object(into)), Value::Object(over)) => merge(into, over),
            _ => {
                into.insert(key.clone(), value.clone());
            }
        }
    }
}

/// Returns a pattern and whether it withholds the matching tools, which requires that all their uses are denied.
fn rule((pattern, of): (&String, &Value)) -> Option<(String, bool)> {
    let (what, action) = match of {
        Value::Object(of) => of.iter().next_back()?,
        action => (&"*".to_owned(), action),
    };
    Some((pattern.clone(), what == "*" && action == "deny"))
}

/// Returns whether a pattern of the CLI matches a name: `*` matches anything, `?` one character, and a blank with a
/// star at the end is optional.
fn matches(name: &str, pattern: &str) -> bool {
    if let Some(begin) = pattern.strip_suffix(" *")
        && fits(name, begin)
    {
        return true;
    }
    fits(name, pattern)
}

fn fits(name: &str, pattern: &str) -> bool {
    let (name, pattern): (Vec<_>, Vec<_>) = (name.chars().collect(), pattern.chars().collect());
    let (mut n, mut p) = (0, 0);
    // Position after the last star, and the position in the name at that time.
    let mut star = None;
    while n < name.len() {
        match pattern.get(p) {
            Some('*') => {
                p += 1;
                star = Some((p, n));
            }
            Some(c) if *c == '?' || *c == name[n] => {
                n += 1;
                p += 1;
            }
            _ => {
                let Some((after, met)) = star else {
                    return false;
                };
                star = Some((after, met + 1));
                (p, n) = (after, met + 1);
            }
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use teamster_core::McpServer;

    use super::*;

    /// Returns parameters with these settings of the caller and none of this machine.
    fn params(config: &Value, permission: &Value) -> ExecuteParams {
        let mut params = ExecuteParams::new("hi");
        params
            .env
            .insert("OPENCODE_CONFIG_CONTENT".into(), config.to_string());
        params
            .env
            .insert("OPENCODE_PERMISSION".into(), permission.to_string());
        params
    }

    #[test]
    fn tools_withheld_by_parameters_are_known() {
        let mut params = params(&json!({}), &json!({}));
        params.denied_tools = vec!["tiny_env".into(), "other_*".into()];
        let stdio = |name: &str| McpServer::stdio(name, "x", Vec::<String>::new());
        let mut only = stdio("only");
        only.tools.only = Some(vec!["echo".into()]);
        let mut except = stdio("except");
        except.tools.except = vec!["fail".into()];
        params.mcp_servers = vec![only, except];
        let withheld = Withheld::of(&params);
        let has = |tool| withheld.has(tool, true);
        assert!(has("tiny_env") && has("other_x"));
        assert!(!has("tiny_envy") && !has("tiny_echo") && !has("bash"));
        assert!(has("only_fail") && !has("only_echo"));
        assert!(has("except_fail") && !has("except_echo"));
        assert!(!has("question"), "nobody is there to be asked");
    }

    #[test]
    fn tools_withheld_by_the_environment_are_known() {
        let of = |config: Value, permission: Value| {
            let withheld = Withheld::of(&params(&config, &permission));
            (withheld.has("s_t", true), withheld.has("s_t", false))
        };
        let none = || json!({});
        let deny = || json!({"s_t": "deny"});
        assert_eq!(of(none(), none()), (false, false));
        assert_eq!(of(none(), deny()), (true, true));
        assert_eq!(of(none(), json!({"s_t": {"*": "deny"}})), (true, true));
        let partly = json!({"s_t": {"*": "deny", "x": "allow"}});
        assert_eq!(of(none(), partly), (false, false));
        assert_eq!(of(json!({"permission": deny()}), none()), (true, true));
        assert_eq!(
            of(json!({"permission": deny()}), json!({"s_*": "allow"})),
            (false, false)
        );
        assert_eq!(of(json!({"tools": {"s_t": false}}), none()), (true, true));
        let agent = json!({"agent": {"build": {"permission": deny()}}});
        assert_eq!(of(agent, json!({"s_t": "allow"})), (true, true));
        let agent = json!({"agent": {"plan": {"permission": deny()}}});
        assert_eq!(of(agent, none()), (false, false));
        // For an unknown name, a rule for all tools does not count.
        assert_eq!(of(none(), json!({"*": "deny"})), (true, false));
        assert_eq!(of(json!({"permission": "deny"}), none()), (true, false));
    }

    #[test]
    fn patterns_are_the_clis() {
        for (pattern, name, is_match) in [
            ("a*c", "abbc", true),
            ("a*c", "abcb", false),
            ("a?", "ab", true),
            ("a *", "a", true),
            ("a *", "a b", true),
            ("a *", "ab", false),
            ("**", "", true),
            ("*_x*y", "s_x_xy", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(name, pattern), is_match, "{pattern} {name}");
        }
    }
}
