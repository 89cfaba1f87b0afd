//! Schemas of what streams contain.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde_json::json;
use teamster_api::RunEvent;
use teamster_core::LogEntry;

/// Returns the schema of a server-sent event whose data is of this type, as JSON.
pub(crate) fn event<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    let data = generator.subschema_for::<T>();
    json_schema!({
        "type": "object",
        "description": "One event of the stream.",
        "required": ["data"],
        "properties": {
            "event": {"enum": ["message", "end"], "description": "`end`, with the data `{}`, ends a log."},
            "id": {"type": "string", "pattern": "^[0-9]+$", "description": "The entry's `seq`."},
            "data": {"type": "string", "contentMediaType": "application/json", "contentSchema": data},
        },
    })
}

/// An entry of a run's log.
pub(crate) struct Entry;

impl JsonSchema for Entry {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "Entry".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        let agent = generator.subschema_for::<LogEntry>();
        let run = generator.subschema_for::<RunEvent>();
        let schema = json!({
            "description": "An entry of a run's log: an event of the agent, or one of the run itself, whose `type` \
            has a colon (or is `reset`).",
            "anyOf": [
                agent,
                {
                    "allOf": [
                        {
                            "type": "object",
                            "required": ["seq", "atMs", "attempt"],
                            "properties": {
                                "seq": {"type": "integer", "minimum": 1},
                                "atMs": {"type": "integer", "minimum": 0},
                                "attempt": {"type": "integer", "minimum": 1},
                            },
                        },
                        run,
                    ],
                },
            ],
        });
        schema.try_into().unwrap_or_default()
    }
}
