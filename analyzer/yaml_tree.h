// The subset of YAML that rule files may use, as a tree in which every value knows its place in the file: one document,
// plain data; no anchors, aliases, tags, merge keys, duplicate keys or keys that are not scalars.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "analyzer/result.h"

namespace capturesan {

struct yaml_node {
  enum class kind { null, scalar, sequence, map };
  kind type = kind::null;
  std::size_t at = 0;                                   // byte of the file where it begins
  std::string text;                                     // of a scalar
  bool quoted = false;                                  // or a block scalar: never anything but text
  std::vector<yaml_node> items;                         // of a sequence
  std::vector<std::pair<yaml_node, yaml_node>> entries; // of a map, in order

  const yaml_node* find(std::string_view key) const {
    for (const auto& [k, v] : entries)
      if (k.text == key) return &v;
    return nullptr;
  }
};

class yaml_document {
 public:
  static constexpr std::size_t most_bytes = std::size_t{1} << 20; // a larger file is refused

  // Fails with the first problem of the syntax, or all problems of the structure.
  static result<yaml_document> parse(std::string file, std::string text);

  const yaml_node& root() const { return root_; }
  const std::string& file() const { return file_; }

  // A problem at byte `at` of the file. Columns and lengths count characters, not bytes; bytes of a mark at the
  // begin do not count.
  problem error_at(std::size_t at, std::string code, std::string message, std::string hint = {}, int length = 1) const;
  problem error(const yaml_node& n, std::string code, std::string message, std::string hint = {}) const;
  // At character `offset` of a scalar's text, wherever quoting and folding put it in the file.
  problem error_in(const yaml_node& n, std::size_t offset, std::string code, std::string message, std::string hint = {},
                   int length = 1) const;
  source_position position(std::size_t at) const;

 private:
  std::size_t place_of(const yaml_node& n, std::size_t offset) const;
  void index();
  std::size_t characters_before(std::size_t at) const;

  std::string file_, text_;
  std::vector<std::size_t> line_starts_;
  std::vector<std::uint32_t> continuations_before_; // of each block of bytes: bytes that begin no character
  yaml_node root_;
};

} // namespace capturesan
