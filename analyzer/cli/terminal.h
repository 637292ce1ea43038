// What the command says of itself: one line each, on stderr, marked with its name.
#pragma once

#include <string>
#include <string_view>

#include "analyzer/result.h"

namespace capturesan::cli {

void say(std::string_view text);                     // "capturesan: text"
void complain(const std::vector<problem>& problems); // one line each; with a place in a file also that line and a caret
std::string shown(const problem& p);                 // the same of one that has a place, printable
bool colours(int fd);                                // a terminal, NO_COLOR unset or empty, TERM not "dumb"

// Keeps 0, 1 and 2 from being given to files of ours if this command was started without them. The program is started
// without them as well.
void occupy_standard_streams();

// The answer of a command, on stdout or stderr. Whether all of it could be written, output_failure() tells at the end.
void print(std::string_view text);
void print_error(std::string_view text);
// Why something given to print() or print_error() did not arrive, with the name of the stream; empty if all did.
std::string output_failure();

// Writes all of it, whatever the signal or short write; false if the other end cannot take it.
bool write_all(int fd, std::string_view text);

} // namespace capturesan::cli
