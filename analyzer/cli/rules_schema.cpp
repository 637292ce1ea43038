// The JSON Schema of rule files. It says what editors can complete and underline; what needs more than a schema (types
// in conditions, names, circles) only the loader knows.
#include <nlohmann/json.hpp>
#include <set>

#include "analyzer/cli/rules.h"
#include "analyzer/fields.h"
#include "analyzer/rule_keys.h"
#include "trace/call.h"

namespace capturesan::cli {

namespace {

using json = nlohmann::ordered_json;

json words(std::span<const std::string_view> list) {
  auto out = json::array();
  for (const auto w : list) out.push_back(w);
  return out;
}

json text(std::string_view pattern = {}) {
  json out{{"type", "string"}};
  if (pattern.empty()) {
    out["minLength"] = 1;
  } else {
    out["pattern"] = pattern;
  }
  return out;
}

json one_of(std::span<const std::string_view> list) { return {{"enum", words(list)}}; }
json list_of(json item) { return {{"type", "array"}, {"items", std::move(item)}}; }
json map_of(json value) {
  return {{"type", "object"},
          {"propertyNames", {{"pattern", "^[a-z_][a-z0-9_]*$"}}},
          {"additionalProperties", std::move(value)}};
}
json reference(rule_object o);

// YAML readers turn true and 12 into a truth value and a number.
json plain() { return {{"type", json::array({"string", "number", "boolean"})}}; }

json shape_of(const rule_key& k) {
  switch (k.shape) {
  case key_shape::text:
  case key_shape::condition:
  case key_shape::message:
    return text();
  case key_shape::word:
    if (k.words == word_set::boolean) return {{"type", "boolean"}};
    return one_of(words_of(k.words));
  case key_shape::number:
    return {{"type", "integer"}, {"minimum", 1}};
  case key_shape::date:
    return text("^[0-9]{4}-[0-9]{2}-[0-9]{2}$");
  case key_shape::duration:
    return text("^[0-9]+(ns|us|ms|s)$");
  case key_shape::schema:
    return {{"const", 1}};
  case key_shape::version:
    return text("^>=[0-9]+(\\.[0-9]+)*$");
  case key_shape::rule_id:
    return text("^[A-Z]{2,8}[0-9]{3,4}$");
  case key_shape::texts:
    return list_of(text());
  case key_shape::fields:
    return list_of(one_of(field_names()));
  case key_shape::events: {
    json kinds = words(event_kind_names());
    kinds.push_back("any");
    json out = list_of({{"enum", std::move(kinds)}});
    out["minItems"] = 1;
    return out;
  }
  case key_shape::object:
    return reference(k.object);
  case key_shape::objects:
    return list_of(reference(k.object));
  case key_shape::lists:
    return map_of(list_of(plain()));
  case key_shape::macros:
    return map_of(text());
  case key_shape::expectation:
    return {{"anyOf", json::array({{{"const", "none"}}, reference(k.object)})}};
  case key_shape::value:
    return plain();
  case key_shape::values:
    return list_of({{"anyOf", json::array({plain(), list_of(plain())})}});
  case key_shape::statuses:
    return {{"anyOf", json::array({plain(), {{"type", "object"}, {"additionalProperties", plain()}}})}};
  }
  return json::object();
}

std::string_view id_of(rule_object o) {
  constexpr std::string_view ids[] = {
#define RULE_OBJECT(kind, words) #kind,
#include "analyzer/rule_keys.def"
  };
  return ids[static_cast<std::size_t>(o)];
}

json reference(rule_object o) { return {{"$ref", "#/definitions/" + std::string(id_of(o))}}; }

json object(rule_object o) {
  json properties = json::object();
  auto required = json::array();
  for (const rule_key* k : keys_of(o)) {
    json shape = shape_of(*k);
    if (shape.contains("$ref")) { // what stands beside a reference is not looked at
      shape = {{"description", k->doc}, {"allOf", json::array({std::move(shape)})}};
    } else {
      shape["description"] = k->doc;
    }
    properties[std::string(k->name)] = std::move(shape);
    if (k->required) required.push_back(k->name);
  }
  if (o == rule_object::given) {
    std::set<std::string_view> operands;
    for (const auto& c : trace::class_table)
      for (const std::string_view name : c.operands)
        if (!name.empty()) operands.insert(name);
    for (const std::string_view name : operands) {
      if (properties.contains(std::string(name))) continue;
      json shape = plain();
      shape["description"] = "an operand of the call";
      properties[std::string(name)] = std::move(shape);
    }
  }
  return {{"type", "object"},
          {"properties", std::move(properties)},
          {"required", std::move(required)},
          {"additionalProperties", false}};
}

} // namespace

std::string rule_schema() {
  json out;
  out["$schema"] = "http://json-schema.org/draft-07/schema#";
  out["title"] = "CaptureSan rules, schema 1";
  out["allOf"] = json::array({reference(rule_object::file)});
  json definitions = json::object();
  for (std::size_t i = 0; i < static_cast<std::size_t>(rule_object::none); ++i) {
    const auto o = static_cast<rule_object>(i);
    definitions[std::string(id_of(o))] = object(o);
  }
  out["definitions"] = std::move(definitions);
  return out.dump(2) + "\n";
}

} // namespace capturesan::cli
