#include "analyzer/cli/session.h"

#include <fstream>
#include <nlohmann/json.hpp>

#include "analyzer/text_file.h"

namespace capturesan::cli {

namespace {

using json = nlohmann::ordered_json;
constexpr int session_schema = 1;
constexpr std::size_t most_bytes = 64 << 20;

std::string file_of(const std::string& folder) { return folder + "/session.json"; }

} // namespace

bool write_session(const std::string& folder, const session_record& record) {
  json options = json::object();
  for (const auto& [name, value] : record.options) options[name] = value;
  json uncovered = json::array();
  for (const uncovered_process& process : record.uncovered) {
    uncovered.push_back({{"pid", process.pid}, {"command", process.command}});
  }
  const json out = {{"schema", session_schema},
                    {"version", CAPTURESAN_VERSION},
                    {"session", record.session},
                    {"directory", record.directory},
                    {"command", record.command},
                    {"options", std::move(options)},
                    {"driver", record.simulated ? "sim" : "real"},
                    {"child_exit", record.child_exit ? json(*record.child_exit) : json(nullptr)},
                    {"child_signal", record.child_signal},
                    {"not_covered", std::move(uncovered)}};
  std::ofstream file(file_of(folder), std::ios::binary | std::ios::trunc);
  file << out.dump(2, ' ', false, json::error_handler_t::replace) << '\n';
  file.close();
  return static_cast<bool>(file);
}

std::optional<session_record> read_session(const std::string& folder) {
  const result<std::string> text = read_text_file(file_of(folder), most_bytes);
  if (!text) return std::nullopt;
  try {
    const json in = json::parse(text.value());
    if (in.at("schema") != session_schema) return std::nullopt;
    session_record record;
    in.at("session").get_to(record.session);
    in.at("directory").get_to(record.directory);
    in.at("command").get_to(record.command);
    record.simulated = in.at("driver") == "sim";
    if (!in.at("child_exit").is_null()) record.child_exit = in.at("child_exit").get<int>();
    in.at("child_signal").get_to(record.child_signal);
    for (const json& process : in.at("not_covered")) {
      record.uncovered.push_back({process.at("pid").get<std::uint32_t>(), process.at("command").get<std::string>()});
    }
    return record;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

} // namespace capturesan::cli
