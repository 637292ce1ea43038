// One instruction's effect on the registers of a thread.
#pragma once

#include <initializer_list>
#include <string_view>
#include <unordered_map>

#include "analyzer/sass_thread.h"

namespace capturesan::sass {

struct sum {
  word value;
  int carries = -1; // out of bit 31; -1 = not known
};
// carries: into bit 0, -1 = not known.
sum add(std::initializer_list<word> terms, int carries);

class step {
 public:
  step(thread& t, const instruction& i) : t_(t), i_(i) {}
  void run();

 private:
  using pair = thread::pair;
  // Operands of sums: destination, carries out, sources, carries in.
  struct terms {
    std::size_t first = 1, count = 0; // sources
    std::size_t outs = 0;             // predicates between destination and sources
    int carry = 0;                    // of the predicates behind the sources; -1 = not known
  };

  static const std::unordered_map<std::string_view, bool (step::*)()>& followed();
  bool known_instruction();
  bool move();
  bool move_64();
  bool multiply();
  bool multiply_wide();
  bool add_up();
  bool add_up_64();
  bool scale_and_add();
  bool shift();
  bool logic();
  bool predicate_logic();
  bool compare();
  bool select();
  bool smaller_or_larger();
  bool read_special();
  bool to_uniform();
  bool permute();
  bool half_constant();
  bool load_constant();
  bool narrow_constant();
  bool shuffle();
  bool reciprocal();
  bool absolute();
  void lose();

  const operand& op(std::size_t n) const;
  std::size_t count() const { return i_.operands.size(); }
  word source(const operand& o) const; // without - and ~
  word any_source(const operand& o) const;
  word in_register(operand_kind file, int index) const;
  pair source_pair(const operand& o) const;
  word constant(const operand& o, std::int64_t further) const;
  word special(const std::string& name) const;
  terms find_terms() const;
  bool smaller_estimate(const terms& at);
  sum total(const operand* sources, std::size_t n, int carry) const;
  void set(const operand& to, word value, int further = 0);
  void set(const operand& to, const pair& value);
  void set_truth(const operand& to, truth value);
  void set_carries(const terms& of, int carries);
  void lose_destination(int registers);
  void lose_everything();

  thread& t_;
  const instruction& i_;
};

} // namespace capturesan::sass
