// What the engine finds and the reports show: the only types a report sees. Plain data, no behaviour; owned by the
// audit.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace capturesan {

inline constexpr std::size_t most_pointers = 64; // listed of one finding

enum class severity : std::uint8_t { note, warning, error };
enum class confidence : std::uint8_t { suspected, likely, proved };

struct stack_frame {
  std::uint64_t address = 0; // return address as recorded, 0 for a synthetic frame
  std::string module;        // file name of the ELF object, without folders; empty if unknown
  std::string symbol;        // demangled; empty if unknown
  std::uint64_t offset = 0;  // bytes from the symbol's start, or from the module's if there is no symbol
  std::string file;          // source file; empty if there is no debug information
  int line = 0;              // from 1; 0 = unknown
};

struct thread_ref {
  std::uint32_t pid = 0, tid = 0, index = 0; // index: unique in its process, from 1
  std::string name;
};

struct capture_ref {
  int id = 0;         // from 1, in order of begin, over all processes
  std::string mode;   // global | thread_local | relaxed
  std::string stream; // as named in reports
  thread_ref origin_thread;
  std::vector<stack_frame> began_at;
};

struct graph_ref {
  int id = 0;               // of the exec, from 1
  std::uint64_t replay = 0; // which launch of it this is about, from 1; 0 = none
  std::uint64_t nodes = 0;
  std::string place = {}; // line of the Python program that captured it; empty if not known
};

struct pointer_ref {
  int graph = 0; // of the exec
  std::uint64_t address = 0;
  std::uint32_t node = 0;   // index in the graph
  std::string node_type;    // kernel | memcpy | memset | ...
  std::string operand;      // parameter | destination | source | data | operand
  std::string kernel;       // demangled; empty for other nodes
  int parameter = -1;       // ordinal, -1 for other nodes
  std::uint64_t offset = 0; // of the pointer inside the parameter (bytes)
  std::uint64_t allocation = 0, allocation_bytes = 0, allocation_offset = 0;
  std::vector<stack_frame> allocated_at, freed_at; // of the first pointer of a finding
  std::string owner_now;                           // who has the address now; empty = nobody
  std::string allocated_in, freed_in; // file names of the library or program that did it; empty if not known
};

struct cascade_call { // a call that failed only because of the finding it hangs under
  std::string api;
  int result = 0;
  thread_ref thread;
  std::uint64_t count = 1; // how often this thread got this result from this call
};

struct finding {
  std::string rule; // id, such as CS101
  std::string name;
  severity sev = severity::error;
  confidence conf = confidence::likely;
  std::string message, remediation, doc;
  std::string api;         // documented name of the call; empty if the finding is about no single call
  std::string symbol;      // its ABI name
  std::string runtime_api; // the CUDA runtime call that it was made by, such as cudaMemcpy; empty if CUPTI did not tell
  int result = 0;          // CUresult
  std::string result_name;
  bool returned = true; // false: the call had not when the trace ended, and has no result
  double time_s = 0;    // seconds since the start of the trace
  thread_ref thread;
  std::optional<capture_ref> capture;
  std::optional<graph_ref> graph;
  std::vector<pointer_ref> pointers; // the first most_pointers of them
  std::uint64_t uses = 0;            // addresses in nodes that the finding is about, listed or not
  std::uint64_t nodes = 0, graphs = 0;
  std::vector<stack_frame> stack;  // native, innermost first, without the shim's own frames
  std::vector<stack_frame> python; // innermost first
  std::uint64_t count = 1;         // calls at which it was found
  std::uint64_t not_listed = 0;    // further findings of this kind, for which there was no room
  std::vector<cascade_call> cascade;
  bool over_gap = false; // records are missing that it hangs on: suspected, whatever the rule says
  std::string after;     // fingerprint of the finding this one followed in the same capture
  // Stable over runs, rebuilds, added lines and ASLR; the second finding of the same one has "-2" behind it, and so on.
  std::string fingerprint;
  bool suppressed = false;
  std::string suppressed_by; // reason given in the suppression
};

struct rule_status { // of every rule that was loaded
  std::string id, name;
  bool evaluated = true;
  std::string why_not; // "needs level full", "records were dropped", ...
  std::uint64_t findings = 0;
  severity sev = severity::error; // of its plain form; a finding may differ
  std::string description = {}, remediation = {}, doc = {};
  std::vector<std::string> tags = {};
  std::string partly = {}; // evaluated, but not all that it should have seen was there: why
};

struct capture_summary {
  capture_ref ref;
  int result = 0;          // of the end call; -1 = never ended
  std::uint64_t nodes = 0; // of the graph, 0 if there is none
  double begin_s = 0, end_s = 0;
};

struct graph_node {
  std::uint32_t index = 0;  // in the driver's list
  std::string type, kernel; // kernel | memcpy | ...; demangled name, empty for other nodes
  bool enabled = true;
};

// A kernel of a graph of which no address is known, and why.
struct uncovered_kernel {
  std::string kernel; // demangled; empty if not known
  std::string why;
  std::uint64_t nodes = 0;
};

struct graph_summary {
  int id = 0;        // of the exec
  int capture = 0;   // id of the capture it came from, 0 = built by hand
  std::string place; // line of the Python program that captured it; empty if not known
  std::uint64_t nodes = 0, kernel_nodes = 0, replays = 0;
  std::uint64_t kernel_nodes_resolved = 0;  // with a parameter that is an address of a live allocation
  std::vector<uncovered_kernel> unresolved; // the first kernels without one
  std::uint64_t of_device = 0;              // kernel nodes whose parameters the device may change
  std::uint64_t bodies = 0;                 // conditional nodes, whose bodies are not known
  std::uint64_t unjudged = 0;               // replays of what the trace does not show
  std::vector<graph_node> listed;           // the first nodes, if the audit was asked to list them
};

struct driver_summary {
  std::string kind = "unknown"; // real | simulated | unknown
  std::string version, device;
};

// What a process said about its place in a distributed job.
struct rank_summary {
  std::uint32_t pid = 0;
  std::string variable; // such as RANK, LOCAL_RANK, SLURM_PROCID
  std::uint64_t rank = 0;
};

struct audit_summary {
  driver_summary driver;
  std::vector<rank_summary> ranks;
  std::vector<capture_summary> captures; // the first 10,000
  std::uint64_t captures_begun = 0;      // all of them
  std::vector<graph_summary> graphs;
  std::vector<rule_status> rules;
  std::uint64_t events = 0, replays = 0, dropped = 0, processes = 0, threads = 0;
  // Driver calls alone are nothing to judge: what is looked for has to do with captures and graphs.
  bool nothing_captured() const { return captures_begun == 0 && captures.empty() && graphs.empty() && replays == 0; }
  bool complete = true;           // nothing dropped, truncated or unreadable
  std::vector<std::string> notes; // in words: what was not covered, given up, unsupported
  std::map<std::string, std::pair<std::uint64_t, std::uint64_t>> coverage; // --cupti=verify: name -> {shim, CUPTI}
};

} // namespace capturesan
