"""The part of JSON Schema 2020-12 that data/schema uses, for checking answers without a package."""

import re

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
KNOWN = {"$schema", "$defs", "$ref", "title", "type", "const", "enum", "required", "properties",
         "additionalProperties", "items", "pattern", "anyOf"}


def is_type(value, name):
    if name == "number":
        return isinstance(value, (int, float)) and not isinstance(value, bool)
    if name == "integer":
        return isinstance(value, int) and not isinstance(value, bool)
    return isinstance(value, TYPES[name])


def complaints(value, schema, root=None, at=""):
    root = root or schema
    unknown = set(schema) - KNOWN
    if unknown:
        raise ValueError(f"this checker does not know {unknown}")
    if "$ref" in schema:
        target = root
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        yield from complaints(value, target, root, at)
    if "anyOf" in schema and all(list(complaints(value, s, root, at)) for s in schema["anyOf"]):
        yield f"{at}: none of the alternatives holds"
    if "const" in schema and value != schema["const"]:
        yield f"{at}: {value!r} is not {schema['const']!r}"
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at}: {value!r} is not one of {schema['enum']}"
    if "type" in schema:
        names = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
        if not any(is_type(value, n) for n in names):
            yield f"{at}: {value!r} is no {' or '.join(names)}"
            return
    if "pattern" in schema and isinstance(value, str) and not re.search(schema["pattern"], value):
        yield f"{at}: {value!r} does not match {schema['pattern']}"
    if isinstance(value, dict):
        properties = schema.get("properties", {})
        for key in schema.get("required", []):
            if key not in value:
                yield f"{at}: {key} is missing"
        more = schema.get("additionalProperties", True)
        for key, part in value.items():
            if key in properties:
                yield from complaints(part, properties[key], root, f"{at}/{key}")
            elif more is False:
                yield f"{at}: {key} should not be there"
            elif isinstance(more, dict):
                yield from complaints(part, more, root, f"{at}/{key}")
    if isinstance(value, list) and "items" in schema:
        for i, part in enumerate(value):
            yield from complaints(part, schema["items"], root, f"{at}/{i}")
