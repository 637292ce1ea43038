#include "analyzer/sass_follow.h"

#include <algorithm>
#include <array>
#include <vector>

namespace capturesan::sass {

namespace {

constexpr int most_steps = 200'000; // of all threads that are followed for one question
constexpr int most_forks = 64;

bool is_access(const instruction& i) {
  const std::string_view base = i.base();
  static constexpr std::string_view names[] = {"LDG", "STG", "LD", "ST", "ATOM", "RED", "REDG", "ATOMG", "LDGSTS"};
  return std::find(std::begin(names), std::end(names), base) != std::end(names);
}

// Of a copy to shared memory it is the source that lies outside.
const operand* address_of(const instruction& i) {
  const operand* found = nullptr;
  for (const operand& o : i.operands) {
    if (o.kind != operand_kind::memory) continue;
    if (found == nullptr || i.base() == "LDGSTS") found = &o;
  }
  return found;
}

class walk {
 public:
  walk(const listing& code, const question& q) : code_(code.code), q_(q) {}

  std::optional<use> from_start(const place& where) {
    found_.reset();
    if (!reaches({thread(q_.how, where, q_.offset), {}, 0})) return std::nullopt;
    return found_;
  }

 private:
  struct state {
    thread t;
    std::array<std::int64_t, 16> barriers; // where threads that meet go on; 0 = not set
    std::size_t at = 0;
  };
  enum class outcome : std::uint8_t { next, used, ended, forked };

  bool reaches(state s);
  bool flow(state& s, const instruction& i, bool& decided);
  bool jump(state& s, const instruction& i, truth taken);
  bool uses_word(const state& s, const instruction& i) const;

  const std::vector<instruction>& code_;
  const question& q_;
  std::optional<use> found_; // the first, on the path that was followed last
  int steps_ = 0, forks_ = 0;
};

// Every way on from here meets an access.
bool walk::reaches(state s) {
  while (s.at < code_.size() && ++steps_ < most_steps) {
    const instruction& i = code_[s.at];
    const truth guard = s.t.guard(i.guard);
    bool decided = false;
    const std::string_view base = i.base();
    if (base == "EXIT" || base == "BRA") {
      truth taken = guard;
      for (std::size_t k = 0; base == "BRA" && k + 1 < i.operands.size(); ++k) { // BRA.U UP0, target
        const truth also = s.t.guard(i.operands[k]);
        if (taken == truth::no || also == truth::no) {
          taken = truth::no;
        } else if (also == truth::unknown) {
          taken = also;
        }
      }
      if (taken == truth::unknown) {
        if (++forks_ > most_forks) return false;
        if (base == "EXIT") return false; // one way ends here
        state other = s;
        return jump(other, i, truth::yes) && reaches(std::move(other)) && (++s.at, reaches(std::move(s)));
      }
      if (taken == truth::no) {
        ++s.at;
      } else if (base == "EXIT" || !jump(s, i, taken)) {
        return false;
      }
      continue;
    }
    if (!flow(s, i, decided)) return false;
    if (decided) continue;
    if (guard == truth::yes && is_access(i) && uses_word(s, i)) {
      found_ = use{i.name, i.at};
      return true;
    }
    if (guard == truth::yes) {
      s.t.apply(i);
    } else if (guard == truth::unknown) {
      thread other = s.t;
      other.apply(i);
      s.t.become_either(other);
    }
    ++s.at;
  }
  return false;
}

bool walk::jump(state& s, const instruction& i, truth) {
  if (i.operands.empty() || i.operands.back().kind != operand_kind::immediate) return false;
  const std::int64_t target = i.operands.back().value;
  if (target < 0 || target % instruction_bytes != 0) return false;
  s.at = static_cast<std::size_t>(target) / instruction_bytes;
  return true;
}

// Calls, indirect jumps and the like are not followed. Where threads of a warp meet, this one goes on.
bool walk::flow(state& s, const instruction& i, bool& decided) {
  const std::string_view base = i.base();
  static constexpr std::string_view not_followed[] = {"CALL",
                                                      "RET",
                                                      "BRX",
                                                      "BRXU",
                                                      "JMP",
                                                      "JMX",
                                                      "JMXU",
                                                      "KILL",
                                                      "BPT",
                                                      "RTT",
                                                      "BMOV",
                                                      "RPCMOV",
                                                      "WARPSYNC.COLLECTIVE"};
  if (std::find(std::begin(not_followed), std::end(not_followed), base) != std::end(not_followed)) return false;
  if (i.has("COLLECTIVE")) return false;
  if (base != "BSSY" && base != "BSYNC") return true;
  const bool named = !i.operands.empty() && i.operands[0].text.size() >= 2 && i.operands[0].text[0] == 'B';
  const int index = named ? std::atoi(i.operands[0].text.c_str() + 1) : -1;
  const truth guard = s.t.guard(i.guard);
  if (index < 0 || index >= 16 || guard == truth::unknown) return false;
  auto& barrier = s.barriers[static_cast<std::size_t>(index)];
  if (guard == truth::no) {
    ++s.at;
  } else if (base == "BSSY") {
    if (i.operands.size() != 2 || i.operands[1].kind != operand_kind::immediate) return false;
    barrier = i.operands[1].value;
    ++s.at;
  } else {
    if (barrier <= 0 || barrier % instruction_bytes != 0) return false;
    s.at = static_cast<std::size_t>(barrier) / instruction_bytes;
  }
  decided = true;
  return true;
}

bool walk::uses_word(const state& s, const instruction& i) const {
  const operand* memory = address_of(i);
  if (memory == nullptr) return false;
  // A predicate behind the address is one more condition: without it zeros are loaded.
  for (const operand* o = memory + 1; o != i.operands.data() + i.operands.size(); ++o) {
    const bool condition = o->kind == operand_kind::predicate || o->kind == operand_kind::uniform_predicate;
    if (condition && s.t.guard(*o) != truth::yes) return false;
  }
  const auto address = s.t.address(*memory, i.has("E"));
  if (!address || address->lower.from != word::origin::lower || address->upper.from != word::origin::upper)
    return false;
  if (address->lower.known && address->upper.known) {
    const std::uint64_t where = std::uint64_t{address->upper.value} << 32 | address->lower.value;
    return where >= q_.begin && where < q_.end;
  }
  return !q_.inside_only;
}

// The first lanes of a few warps, and the last thread: kernels divide their work among warps, and blocks.
std::vector<place> some_threads(const launch& how) {
  const std::uint64_t count = std::uint64_t{how.block[0]} * how.block[1] * how.block[2];
  const auto thread_at = [&](std::uint64_t n, bool last_block) {
    place p;
    if (how.block[0] == 0 || how.block[1] == 0) return p;
    p.thread[0] = static_cast<std::uint32_t>(n % how.block[0]);
    p.thread[1] = static_cast<std::uint32_t>(n / how.block[0] % how.block[1]);
    p.thread[2] = static_cast<std::uint32_t>(n / how.block[0] / how.block[1]);
    for (std::size_t k = 0; last_block && k < 3; ++k) p.block[k] = how.grid[k] == 0 ? 0 : how.grid[k] - 1;
    return p;
  };
  std::vector<place> all = {thread_at(0, false)};
  for (std::uint64_t n = 32; n < count && n <= 128; n *= 2) all.push_back(thread_at(n, false));
  if (count > 1) all.push_back(thread_at(count - 1, false));
  all.push_back(thread_at(0, true));
  return all;
}

} // namespace

std::optional<use> find_use(const listing& code, const question& q) {
  if (parameter_base(q.how.sm) == 0) return std::nullopt;
  walk w(code, q);
  for (const place& where : some_threads(q.how))
    if (auto found = w.from_start(where)) return found;
  return std::nullopt;
}

} // namespace capturesan::sass
