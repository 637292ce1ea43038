// JSON as every report writes it.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace capturesan {

using ordered_json = nlohmann::ordered_json;

// Indented, with a newline at the end. Valid whatever the strings hold; `</` is written `<\/`, so that the text can be
// put into a page.
std::string json_text(const ordered_json& value);

} // namespace capturesan
