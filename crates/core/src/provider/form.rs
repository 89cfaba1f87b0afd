//! Forms for questions of agents to their user.

use serde_json::{Map, Value, json};

/// A field of a form: a question with its choices.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ChoiceField<'a> {
    /// Title for people.
    pub title: &'a str,
    /// The choices.
    pub choices: Vec<&'a str>,
    /// True if several of them can be chosen.
    pub multiple: bool,
}

impl<'a> ChoiceField<'a> {
    /// Creates a field with one choice of these.
    pub fn new(title: &'a str, choices: Vec<&'a str>) -> Self {
        Self {
            title,
            choices,
            multiple: false,
        }
    }
}

/// Returns the JSON Schema of a form with these fields, all of them required. They have the
/// [names](form_names) of their titles.
pub fn choice_form(fields: &[ChoiceField<'_>]) -> Value {
    let names = form_names(fields.iter().map(|field| field.title));
    let schema = |field: &ChoiceField<'_>| {
        let one = json!({"type": "string", "enum": field.choices});
        if field.multiple {
            json!({"type": "array", "items": one})
        } else {
            one
        }
    };
    let properties: Map<String, Value> = (names.iter().cloned())
        .zip(fields.iter().map(schema))
        .collect();
    json!({"type": "object", "required": names, "properties": properties})
}

/// Returns the names of the fields with these titles: a title that is there already gets a number.
pub fn form_names<'a>(titles: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for title in titles {
        let mut name = title.to_owned();
        let mut number = 1;
        while names.contains(&name) {
            number += 1;
            name = format!("{title} {number}");
        }
        names.push(name);
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_field_has_its_choices_and_a_name_of_its_own() {
        let mut many = ChoiceField::new("Colour", vec!["blue"]);
        many.multiple = true;
        let one = ChoiceField::new("Colour", vec!["red", "green"]);
        assert_eq!(
            choice_form(&[one, many]),
            json!({
                "type": "object",
                "required": ["Colour", "Colour 2"],
                "properties": {
                    "Colour": {"type": "string", "enum": ["red", "green"]},
                    "Colour 2": {"type": "array", "items": {"type": "string", "enum": ["blue"]}},
                },
            })
        );
    }

    #[test]
    fn a_title_that_is_there_gets_the_next_free_number() {
        let names = form_names(["a", "b", "a", "a 2", "a"]);
        assert_eq!(names, ["a", "b", "a 2", "a 2 2", "a 3"]);
    }
}
