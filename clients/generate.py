#!/usr/bin/env python3
"""Makes the types of both clients, and their version, from the OpenAPI document of a server.

    clients/generate.py            writes them
    clients/generate.py --check    exit code 1 if they are not what this would write

The document is that of the program in TEAMSTER, else in target/debug.
"""

import json
import keyword
import os
import re
import subprocess
import sys
import tempfile
import urllib.request
from pathlib import Path

HERE = Path(__file__).resolve().parent
PROGRAM = os.environ.get("TEAMSTER", str(HERE.parent / "target/debug/teamster"))
NOTE = "Made by clients/generate.py from the OpenAPI document. Do not edit."
PREFIX = "#/components/schemas/"


def document():
    """The document, from a server that is started for it."""
    with tempfile.TemporaryDirectory() as home:
        env = {"PATH": os.environ["PATH"], "HOME": home, "XDG_STATE_HOME": home}
        command = [PROGRAM, "serve", "--listen", "127.0.0.1:0"]
        with subprocess.Popen(command, env=env, cwd=home, stdout=subprocess.PIPE, text=True) as server:
            try:
                url = server.stdout.readline().strip()
                with urllib.request.urlopen(f"{url}/v1/openapi.json", timeout=30) as answer:
                    return json.load(answer)
            finally:
                server.terminate()


class Shape:
    """An object: its fields, those that are required, and whether there may be others."""

    def __init__(self, fields=None, required=(), is_open=False):
        self.fields = dict(fields or {})
        self.required = set(required)
        self.is_open = is_open

    def with_fields_of(self, other):
        return Shape(self.fields | other.fields, self.required | other.required, self.is_open or other.is_open)

    def tag(self):
        """The constant that only this member of a union has."""
        for name in ("type", "decision", "kind"):
            if "const" in self.fields.get(name, {}):
                return self.fields[name]["const"]
        return None


class Schemas:
    def __init__(self, openapi):
        self.all = openapi["components"]["schemas"]
        refs = re.findall(rf'"{PREFIX}(\w+)"', json.dumps(openapi["paths"]))
        self.roots = [name for name in dict.fromkeys(refs) if name not in ("Document", "Health", "Login")]

    def shapes(self, schema):
        """What an object may look like, or None if it is not always an object."""
        found = [Shape()]
        is_object = False
        if "$ref" in schema:
            inner = self.shapes(self.all[schema["$ref"].removeprefix(PREFIX)])
            if inner is None:
                return None
            found, is_object = inner, True
        if schema.get("type") == "object" or "properties" in schema:
            is_open = bool(schema.get("additionalProperties"))
            own = Shape(schema.get("properties"), schema.get("required", ()), is_open)
            found, is_object = [shape.with_fields_of(own) for shape in found], True
        for part in schema.get("allOf", []):
            inner = self.shapes(part)
            if inner is None:
                return None
            found, is_object = [a.with_fields_of(b) for a in found for b in inner], True
        for key in ("oneOf", "anyOf"):
            if key not in schema:
                continue
            inner = [self.shapes(part) for part in schema[key]]
            if any(one is None for one in inner):
                return None
            found, is_object = [a.with_fields_of(b) for a in found for one in inner for b in one], True
        return found if is_object else None


def pascal(text):
    return "".join(part[:1].upper() + part[1:] for part in re.split(r"[^A-Za-z0-9]+", text))


def constants(schema):
    """The values of an enumeration, or None."""
    if "enum" in schema:
        return list(schema["enum"])
    if "const" in schema:
        return [schema["const"]]
    parts = schema.get("oneOf") or schema.get("anyOf")
    if not parts:
        return None
    found = [constants(part) for part in parts]
    return None if any(one is None for one in found) else [value for one in found for value in one]


#: What the members of a union are called, where its own name would give them names that others have.
MEMBERS = {"Entry": "LogEntry"}


def names_of(name, shapes):
    """Names for the members of a union."""
    return [f"{pascal(str(shape.tag() or index))}{MEMBERS.get(name, name)}" for index, shape in enumerate(shapes)]


class Language:
    """Writes types; the languages differ in words only."""

    def __init__(self, schemas):
        self.schemas = schemas
        self.used = []

    def reference(self, name):
        self.used.append(name)
        return self.name(name)

    def definitions(self):
        """All that a client sees, by name. What is merged into another type only is not among it."""
        self.used = list(self.schemas.roots)
        done = {}
        while self.used:
            name = self.used.pop()
            if name not in done:
                done[name] = self.definition(name)
        return "\n".join(done[name] for name in sorted(done))

    def expression(self, schema, depth=0):
        if schema is True or schema == {} or schema is None:
            return self.anything
        values = constants(schema)
        if values is not None:
            return self.literal(values)
        if "$ref" in schema:
            return self.reference(schema["$ref"].removeprefix(PREFIX))
        parts = schema.get("oneOf") or schema.get("anyOf")
        if parts:
            return self.union([self.expression(part, depth) for part in parts])
        kind = schema.get("type")
        if isinstance(kind, list):
            return self.union([self.expression({**schema, "type": one}, depth) for one in kind])
        if kind == "array":
            return self.array(self.expression(schema.get("items", {}), depth))
        if kind == "object" and not schema.get("properties"):
            return self.mapping(self.expression(schema.get("additionalProperties", {}), depth))
        return self.words.get(kind, self.anything)

    def union(self, parts):
        return " | ".join(dict.fromkeys(parts))

    def definition(self, name):
        schema = self.schemas.all[name]
        about = schema.get("description", "")
        values = constants(schema)
        if values is not None:
            return self.alias(name, self.literal(values), about)
        shapes = self.schemas.shapes(schema)
        if shapes is None or (len(shapes) == 1 and not shapes[0].fields):
            return self.alias(name, self.expression(schema), about)
        if len(shapes) == 1:
            return self.object(name, shapes[0], about)
        members = names_of(name, shapes)
        taken = [member for member in members if member in self.schemas.all]
        if taken:
            sys.exit(f"clients/generate.py: {name} needs other names for its members: there is {taken[0]}")
        objects = [self.object(member, shape, "") for member, shape in zip(members, shapes)]
        return "\n".join([*objects, self.alias(name, self.union([self.name(member) for member in members]), about)])


class TypeScript(Language):
    anything = "unknown"
    words = {"string": "string", "integer": "number", "number": "number", "boolean": "boolean", "null": "null"}

    def name(self, name):
        return name

    def literal(self, values):
        return " | ".join(json.dumps(value) for value in values)

    def array(self, item):
        return f"({item})[]" if "|" in item else f"{item}[]"

    def mapping(self, value):
        return f"Record<string, {value}>"

    @staticmethod
    def comment(about, indent=""):
        return f"{indent}/** {about.replace('*/', '* /')} */\n" if about else ""

    def alias(self, name, expression, about):
        return f"{self.comment(about)}export type {name} = {expression};\n"

    def object(self, name, shape, about):
        lines = [f"{self.comment(about)}export interface {name} {{"]
        for field, schema in shape.fields.items():
            lines.append(f"{self.comment(schema.get('description', ''), '  ')}  {field}{'' if field in shape.required else '?'}: {self.expression(schema)};")
        if shape.is_open:
            lines.append("  [key: string]: unknown;")
        return "\n".join([*lines, "}\n"])

    def module(self):
        return f"// {NOTE}\n\n{self.definitions()}"


class Python(Language):
    anything = "Any"
    words = {"string": "str", "integer": "int", "number": "float", "boolean": "bool", "null": "None"}

    def name(self, name):
        return f'"{name}"'

    def union(self, parts):
        parts = list(dict.fromkeys(parts))
        return parts[0] if len(parts) == 1 else f"Union[{', '.join(parts)}]"

    def literal(self, values):
        return f"Literal[{', '.join(json.dumps(value) for value in values)}]"

    def array(self, item):
        return f"list[{item}]"

    def mapping(self, value):
        return f"dict[str, {value}]"

    @staticmethod
    def comment(about, indent=""):
        return "".join(f"{indent}#: {line}\n" for line in about.split("  ") if line.strip())

    def alias(self, name, expression, about):
        return f"{self.comment(about)}{name}: TypeAlias = {expression}\n"

    def object(self, name, shape, about):
        def value(field, schema):
            expression = self.expression(schema)
            return expression if field in shape.required else f"NotRequired[{expression}]"

        if any(keyword.iskeyword(field) for field in shape.fields):
            fields = "".join(f"    {json.dumps(field)}: {value(field, schema)},\n" for field, schema in shape.fields.items())
            return f"{self.comment(about)}{name} = TypedDict({json.dumps(name)}, {{\n{fields}}})\n"
        text = json.dumps(about, ensure_ascii=False)[1:-1].replace('\\"', '"')
        lines = [f"class {name}(TypedDict):"] + ([f'    """{text}"""\n'] if about else [])
        for field, schema in shape.fields.items():
            lines.append(f"{self.comment(schema.get('description', ''), '    ')}    {field}: {value(field, schema)}")
        return "\n".join([*lines, ""] if shape.fields else [*lines, "    pass\n"])

    def module(self):
        head = "from __future__ import annotations\n\nfrom typing import Any, Literal, NotRequired, TypeAlias, TypedDict, Union\n"
        return f'"""{NOTE}"""\n\n{head}\n{self.definitions()}'


def with_version(path, pattern, version):
    """The file with the version of the server."""
    return re.sub(pattern, rf'\g<1>"{version}"', (HERE / path).read_text(encoding="utf-8"), count=1)


def main():
    check = sys.argv[1:] == ["--check"]
    if sys.argv[1:] and not check:
        sys.exit(__doc__)
    openapi = document()
    schemas, version = Schemas(openapi), openapi["info"]["version"]
    made = {
        "typescript/src/types.ts": TypeScript(schemas).module(),
        "python/src/teamster_client/types.py": Python(schemas).module(),
        "typescript/package.json": with_version("typescript/package.json", r'("version": )"[^"]*"', version),
        "python/pyproject.toml": with_version("python/pyproject.toml", r'(?m)(^version = )"[^"]*"', version),
    }
    wrong = []
    for path, text in made.items():
        file = HERE / path
        if check and (not file.exists() or file.read_text(encoding="utf-8") != text):
            wrong.append(path)
        elif not check:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    if wrong:
        sys.exit(f"clients/generate.py: {' and '.join(wrong)} differ from the OpenAPI document: run clients/generate.py")


main()
