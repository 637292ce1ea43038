#!/usr/bin/env python3
"""The JSON Schema of rule files, before a validator of others: it accepts the shipped rules and what `rules new` writes, and refuses
the bad cases that a schema can refuse.

usage: check_schema.py CAPTURESAN
"""
import json
import pathlib
import subprocess
import sys

import check_bad_rules

try:
    import jsonschema
    import yaml
except ImportError as error:
    print(f"skipped: {error}; scripts/set-up installs it")
    sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parents[2]
# Only these can be seen without knowing the language of conditions and the calls.
FOR_SCHEMAS = {"CGE010", "CGE011", "CGE013", "CGE014", "CGE015", "CGE016"}
# ... but for these, each for a reason a schema cannot know.
NOT_FOR_SCHEMAS = {
    "rule '2027-13-01' is no date": "dates are a pattern",
    "rule a day that does not exist": "dates are a pattern",
    "file the rules need capturesan 99.0 or newer": "a schema has no version of its engine",
    "file a later engine needed: nothing else is said": "a schema has no version of its engine",
    "given no call": "either a call or a record",
}


class Loader(yaml.SafeLoader):
    """As an editor reads YAML, but without dates."""


Loader.yaml_implicit_resolvers = {first: [(tag, pattern) for tag, pattern in resolvers if tag != "tag:yaml.org,2002:timestamp"]
                                  for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()}


def load(text):
    return yaml.load(text, Loader)


def main():
    command = pathlib.Path(sys.argv[1]).resolve()

    def say(*words):
        return subprocess.run([command, "rules", *words], capture_output=True, text=True, check=True).stdout

    schema = json.loads(say("schema"))
    jsonschema.Draft7Validator.check_schema(schema)
    validator = jsonschema.Draft7Validator(schema)
    wrong = []
    good = {path.name: path.read_text() for path in (ROOT / "rules").glob("*.yaml")}
    good["a new rule"] = say("new", "MY101", "mine")
    for name, text in good.items():
        for error in validator.iter_errors(load(text)):
            wrong.append(f"{name} is refused at {'/'.join(map(str, error.absolute_path))}: {error.message}")
    refused, left = 0, 0
    for path in sorted(check_bad_rules.HERE.glob("bad/*.cases")):
        for case in list(check_bad_rules.cases_of(path)):
            codes = {one[3] for one in case["expected"]}
            if not codes <= FOR_SCHEMAS or case["name"] in NOT_FOR_SCHEMAS:
                left += 1
                continue
            lines, _, _ = check_bad_rules.built(case)
            refused += 1
            if validator.is_valid(load("\n".join(lines))):
                wrong.append(f"{case['at']}: {case['name']}: the schema accepts it")
    if refused < 60:
        wrong.append(f"only {refused} bad cases")
    for line in wrong:
        print(line)
    print(f"{len(good)} good files, {refused} bad ones refused, {left} are for the loader alone; {len(wrong)} wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
