// The grammar of conditions. The only file that includes PEGTL.
#include <array>
#include <cctype>
#include <charconv>

#include <tao/pegtl.hpp>
#include <tao/pegtl/contrib/parse_tree.hpp>

#include "analyzer/condition.h"

namespace capturesan {

namespace {

namespace grammar {

using namespace tao::pegtl;

struct blanks : star<space> {};
struct end_of_word : not_at<identifier_other> {};
template <class Word>
struct keyword : seq<Word, end_of_word> {};

struct kw_or : keyword<TAO_PEGTL_STRING("or")> {};
struct kw_and : keyword<TAO_PEGTL_STRING("and")> {};
struct kw_not : keyword<TAO_PEGTL_STRING("not")> {};
struct kw_in : keyword<TAO_PEGTL_STRING("in")> {};
struct kw_exists : keyword<TAO_PEGTL_STRING("exists")> {};
struct reserved : sor<kw_or, kw_and, kw_not, kw_in, kw_exists, keyword<TAO_PEGTL_STRING("glob")>,
                      keyword<TAO_PEGTL_STRING("matches")>, keyword<TAO_PEGTL_STRING("starts_with")>> {};

struct path : seq<not_at<reserved>, identifier, star<one<'.'>, identifier>> {};
struct text_body : star<sor<seq<one<'\\'>, any>, not_one<'"', '\\'>>> {};
struct text_end : one<'"'> {};
struct text_literal : if_must<one<'"'>, text_body, text_end> {};
struct number_end : end_of_word {};
struct number_literal : seq<opt<one<'-'>>, at<digit>,
                            must<sor<seq<string<'0', 'x'>, plus<xdigit>>, plus<digit>>, star<alpha>, number_end>> {};
struct word_literal : path {};
struct name : identifier {};
struct sigil_name : name {};
struct macro_use : if_must<one<'$'>, sigil_name> {};
struct list_use : if_must<one<'$'>, sigil_name> {};

struct value : sor<text_literal, number_literal, word_literal> {};
struct list_item : value {};
struct list_end : one<']'> {};
struct list_literal
    : if_must<one<'['>, blanks, list_item, star<blanks, one<','>, blanks, must<list_item>>, blanks, list_end> {};

struct op_symbol : sor<string<'=', '='>, string<'!', '='>, string<'<', '='>, string<'>', '='>, one<'<'>, one<'>'>> {};
struct op_word : sor<keyword<TAO_PEGTL_STRING("glob")>, keyword<TAO_PEGTL_STRING("matches")>,
                     keyword<TAO_PEGTL_STRING("starts_with")>> {};
struct op_in : kw_in {};
struct op_not_in : seq<kw_not, plus<space>, kw_in> {};
struct right_side : value {};
struct in_side : sor<list_use, list_literal> {};
struct plain_test : seq<sor<op_symbol, op_word>, blanks, must<right_side>> {};
struct list_test : seq<sor<op_in, op_not_in>, blanks, must<in_side>> {};
struct test : seq<path, blanks, opt<sor<plain_test, list_test>>> {};

struct open_paren : one<'('> {};
struct close_paren : one<')'> {};
struct exists_path : path {};
struct exists_test : if_must<kw_exists, blanks, open_paren, blanks, exists_path, blanks, close_paren> {};
struct either;
struct operand_expected : seq<either> {};
struct group : if_must<one<'('>, blanks, operand_expected, blanks, close_paren> {};
struct unary;
struct negated : seq<unary> {};
struct negation : if_must<kw_not, blanks, negated> {};
struct unary : sor<group, exists_test, negation, macro_use, test> {};
struct and_operand : seq<unary> {};
struct or_operand;
struct both : seq<unary, star<blanks, kw_and, blanks, must<and_operand>>> {};
struct or_operand : seq<both> {};
struct either : seq<both, star<blanks, kw_or, blanks, must<or_operand>>> {};
struct nothing_more : eof {};
struct condition : must<blanks, operand_expected, blanks, nothing_more> {};

template <class Rule>
inline constexpr const char* expected = "a condition";
template <>
inline constexpr const char* expected<text_body> = "text";
template <>
inline constexpr const char* expected<text_end> = "a closing quote";
template <>
inline constexpr const char* expected<number_end> = "a number with a unit, such as 4KiB or 20us";
template <>
inline constexpr const char* expected<sigil_name> = "a name after $";
template <>
inline constexpr const char* expected<list_item> = "a value";
template <>
inline constexpr const char* expected<list_end> = "',' or ']'";
template <>
inline constexpr const char* expected<right_side> = "a value: \"text\", a number, true, false or a word";
template <>
inline constexpr const char* expected<in_side> = "[a list] or $list";
template <>
inline constexpr const char* expected<open_paren> = "'('";
template <>
inline constexpr const char* expected<close_paren> = "')'";
template <>
inline constexpr const char* expected<exists_path> = "a field";
template <>
inline constexpr const char* expected<nothing_more> = "'and', 'or' or the end";

template <class Rule>
struct control : normal<Rule> {
  template <class Input, class... States>
  [[noreturn]] static void raise(const Input& in, States&&...) {
    throw parse_error(std::string("expected ") + expected<Rule>, in);
  }
};

template <class Rule>
struct selector
    : parse_tree::selector<
          Rule, parse_tree::store_content::on<path, text_literal, number_literal, word_literal, sigil_name, macro_use,
                                              list_use, list_literal, op_symbol, op_word, op_in, op_not_in, test,
                                              exists_path, exists_test, group, negation, both, either>> {};

} // namespace grammar

using node = tao::pegtl::parse_tree::node;

std::unique_ptr<expr> make(expr::kind type, const node& n) {
  auto e = std::make_unique<expr>();
  e->type = type;
  e->at = n.m_begin.byte;
  e->length = n.m_end.byte - n.m_begin.byte;
  return e;
}

std::string unescape(std::string_view quoted) {
  std::string out;
  for (std::size_t i = 1; i + 1 < quoted.size(); ++i) {
    if (quoted[i] == '\\' && i + 2 < quoted.size()) ++i;
    out += quoted[i];
  }
  return out;
}

struct unit {
  std::string_view name;
  literal::kind type;
  std::int64_t factor;
};
constexpr unit units[] = {
    {"B", literal::kind::size, 1},
    {"KiB", literal::kind::size, 1 << 10},
    {"MiB", literal::kind::size, 1 << 20},
    {"GiB", literal::kind::size, 1 << 30},
    {"ns", literal::kind::duration, 1},
    {"us", literal::kind::duration, 1000},
    {"ms", literal::kind::duration, 1000000},
    {"s", literal::kind::duration, 1000000000},
};

class translator {
 public:
  explicit translator(std::vector<condition_problem>& problems) : problems_(problems) {}

  std::unique_ptr<expr> translate(const node& n) {
    if (n.is_type<grammar::either>()) return chain(n, expr::kind::any_of);
    if (n.is_type<grammar::both>()) return chain(n, expr::kind::all_of);
    if (n.is_type<grammar::group>()) {
      auto e = translate(*n.children.front());
      if (e) e->grouped = true;
      return e;
    }
    if (n.is_type<grammar::negation>()) {
      auto e = make(expr::kind::negation, n);
      e->children.push_back(translate(*n.children.front()));
      return e;
    }
    if (n.is_type<grammar::exists_test>()) {
      auto e = make(expr::kind::exists, *n.children.front());
      e->name = n.children.front()->string();
      return e;
    }
    if (n.is_type<grammar::macro_use>()) {
      auto e = make(expr::kind::macro, n);
      e->name = n.children.front()->string();
      return e;
    }
    return test(n);
  }

 private:
  // `a or b and c` reads differently to different people: parentheses are asked for.
  std::unique_ptr<expr> chain(const node& n, expr::kind type) {
    if (n.children.size() == 1) return translate(*n.children.front());
    auto e = make(type, n);
    for (const auto& c : n.children) {
      auto child = translate(*c);
      if (type == expr::kind::any_of && child && child->type == expr::kind::all_of && !child->grouped) {
        problems_.push_back({child->at, child->length, "CGE026", "'and' and 'or' are mixed without parentheses",
                             "put parentheses around this part"});
      }
      e->children.push_back(std::move(child));
    }
    return e;
  }

  std::unique_ptr<expr> test(const node& n) {
    const node& field = *n.children.front();
    auto e = make(expr::kind::truth, field);
    e->name = field.string();
    if (n.children.size() < 3) return e;
    e->type = expr::kind::compare;
    const std::string op = n.children[1]->string();
    const node& right = *n.children[2];
    if (n.children[1]->is_type<grammar::op_not_in>()) {
      e->op = comparison::not_in;
    } else {
      constexpr std::pair<std::string_view, comparison> ops[] = {
          {"==", comparison::equal},        {"!=", comparison::not_equal},
          {"<=", comparison::less_equal},   {">=", comparison::greater_equal},
          {"<", comparison::less},          {">", comparison::greater},
          {"in", comparison::in},           {"glob", comparison::glob},
          {"matches", comparison::matches}, {"starts_with", comparison::starts_with},
      };
      for (const auto& [name, value] : ops)
        if (name == op) e->op = value;
    }
    if (right.is_type<grammar::list_use>()) {
      e->list = right.children.front()->string();
      literal place; // where to complain about the list
      place.at = right.m_begin.byte;
      place.length = right.m_end.byte - right.m_begin.byte;
      e->values.push_back(place);
    } else if (right.is_type<grammar::list_literal>()) {
      for (const auto& c : right.children) e->values.push_back(value(*c));
    } else {
      e->values.push_back(value(right));
    }
    return e;
  }

  literal value(const node& n) {
    literal v;
    const std::string raw = n.string();
    v.at = n.m_begin.byte;
    v.length = raw.size();
    v.text = raw;
    if (n.is_type<grammar::text_literal>()) {
      v.type = literal::kind::text;
      v.text = unescape(raw);
    } else if (n.is_type<grammar::number_literal>()) {
      number(v, raw);
    } else if (raw == "true" || raw == "false") {
      v.type = literal::kind::boolean;
      v.number = raw == "true" ? 1 : 0;
    } else {
      v.type = literal::kind::word;
    }
    return v;
  }

  void number(literal& v, std::string_view raw) {
    const bool negative = raw.front() == '-';
    std::string_view digits = raw.substr(negative ? 1 : 0);
    const bool hex = digits.starts_with("0x");
    if (hex) digits.remove_prefix(2);
    std::uint64_t n = 0;
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), n, hex ? 16 : 10);
    const std::string_view rest(end, static_cast<std::size_t>(digits.data() + digits.size() - end));
    bool too_large = error != std::errc{} || (n >> 63) != 0;
    if (!rest.empty()) {
      const unit* known = nullptr;
      for (const unit& u : units)
        if (u.name == rest) known = &u;
      if (known == nullptr) {
        problems_.push_back({v.at, v.length, "CGE028", "unknown unit '" + std::string(rest) + "'",
                             "units are B KiB MiB GiB and ns us ms s"});
        return;
      }
      v.type = known->type;
      too_large = too_large || n > static_cast<std::uint64_t>(INT64_MAX / known->factor);
      if (!too_large) n *= static_cast<std::uint64_t>(known->factor);
    }
    if (too_large) problems_.push_back({v.at, v.length, "CGE028", "this number is too large", ""});
    v.number = too_large ? 0 : negative ? -static_cast<std::int64_t>(n) : static_cast<std::int64_t>(n);
  }

  std::vector<condition_problem>& problems_;
};

constexpr std::size_t most_characters = 4096;
constexpr int most_depth = 64;

// The grammar recurses; parentheses and `not` are counted before it runs.
std::size_t too_deep_at(std::string_view text) {
  int depth = 0, nots = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (quoted && text[i] == '\\') {
      ++i; // whatever follows belongs to the text
      continue;
    }
    if (text[i] == '"') quoted = !quoted;
    if (quoted) continue;
    if (text[i] == '(') ++depth;
    if (text[i] == ')') --depth;
    if (text.substr(i).starts_with("not")) ++nots;
    if (depth > most_depth || nots > 4 * most_depth) return i;
  }
  return std::string_view::npos;
}

// What people write who know another language, and how it is written here.
std::string hint_at(std::string_view rest, bool at_condition) {
  constexpr std::pair<std::string_view, const char*> habits[] = {
      {"=", "equality is written =="},
      {"&&", "write 'and'"},
      {"||", "write 'or'"},
      {"!", "write 'not'"},
      {"AND", "write 'and'"},
      {"OR", "write 'or'"},
      {"'", "text is written in double quotes"},
  };
  for (const auto& [written, hint] : habits)
    if (rest.starts_with(written)) return hint;
  if (rest.size() > 1 && rest[0] == '.' && std::isdigit(static_cast<unsigned char>(rest[1])) != 0)
    return "numbers are whole: write a smaller unit, such as 1500ns";
  if (at_condition && !rest.empty() && (rest[0] == '"' || std::isdigit(static_cast<unsigned char>(rest[0])) != 0))
    return "the field comes first: event.result == 900";
  return {};
}

} // namespace

std::unique_ptr<expr> parse_condition(std::string_view text, std::vector<condition_problem>& problems) {
  if (text.size() > most_characters) {
    problems.push_back({most_characters, 1, "CGE029", "a condition has at most 4096 characters", "use macros"});
    return nullptr;
  }
  if (const std::size_t at = too_deep_at(text); at != std::string_view::npos) {
    problems.push_back({at, 1, "CGE029", "nested too deeply", "use macros"});
    return nullptr;
  }
  tao::pegtl::memory_input in(text.data(), text.size(), "condition");
  try {
    const auto root =
        tao::pegtl::parse_tree::parse<grammar::condition, grammar::selector, tao::pegtl::nothing, grammar::control>(in);
    if (!root || root->children.empty()) return nullptr;
    const std::size_t before = problems.size();
    auto e = translator(problems).translate(*root->children.front());
    return problems.size() == before ? std::move(e) : nullptr;
  } catch (const tao::pegtl::parse_error& e) {
    const std::size_t at = e.positions().front().byte;
    const std::string message(e.message());
    problems.push_back(
        {at, 1, "CGE020", message, hint_at(text.substr(std::min(at, text.size())), message == "expected a condition")});
    return nullptr;
  }
}

} // namespace capturesan
