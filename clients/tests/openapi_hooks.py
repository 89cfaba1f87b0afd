"""What Schemathesis cannot know of the machine: names of what exists. .ci/openapi gives them in OPENAPI_KNOWN."""

import itertools
import json
import os
from urllib.parse import unquote

import schemathesis
from schemathesis import GenerationMode

#: Numbers for keys, which are for one body each, and for sessions: one that another run works with is refused.
NUMBERS = itertools.count(1)
KNOWN = json.loads(os.environ["OPENAPI_KNOWN"])


def integers(value):
    """1.0 is an integer of JSON Schema, and none of the server."""
    if isinstance(value, dict):
        return {name: integers(field) for name, field in value.items()}
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**63:
        return int(value)
    return value


@schemathesis.hook
def before_call(context, case, kwargs):
    """Names what exists in requests that are valid by the schema: those are to be accepted, whatever else they have."""
    if case.meta is None or case.meta.generation.mode != GenerationMode.POSITIVE:
        return
    if case.operation.definition.raw.get("operationId") == "commandAgents" and not isinstance(case.body, dict):
        # Schemathesis 4.32.5 takes it for valid, because of the schema's `not`.
        case.body = {"all": True}
    if isinstance(case.body, dict):
        case.body = integers(case.body)
        case.body.update({name: value for name, value in KNOWN.items() if case.body.get(name)})
        for name in ("placement", "secrets", "rerunIfLost"):
            # Only a server of a fleet takes them.
            case.body.pop(name, None)
        # Which accounts the machine has is in no schema.
        case.body.pop("accounts", None)
        if case.body.get("artifacts"):
            # What is a pattern is in no schema.
            case.body["artifacts"] = ["*.md"]
        if case.body.get("workspace"):
            # Which commits and repositories there are is in no schema.
            case.body["workspace"] = {"kind": "empty"}
        if case.operation.definition.raw.get("operationId") == "offerFile":
            # The name is that of the path, and the number of parts follows from the size.
            case.body |= {"name": unquote(case.path_parameters["name"]), "bytes": 0, "parts": []}
        if case.body.get("sessionId"):
            case.body["sessionId"] = f"session-{next(NUMBERS)}"
    if "Idempotency-Key" in case.headers:
        case.headers["Idempotency-Key"] = f"key-{next(NUMBERS)}"
    if "since" in case.query and "until" in case.query:
        # Which of them is later is in no schema.
        del case.query["until"]
