// SPDX-License-Identifier: Apache-2.0
// The subcommands of the program vartml: one function each, one row each in the table of main.cpp.
#pragma once
#include <vartml/result.h>

namespace vartml::tools {

// Exit statuses of every subcommand.
enum Exit : int {
    exit_done = 0,
    exit_fault = 1,  // input and output, memory, a fault of ours; doctor: a problem; diff: beyond
                     // the threshold
    exit_usage = 2,  // command line or configuration
    exit_not_compilable = 3,  // the ONNX model
    exit_too_slow = 3,        // run --profiling-overhead-limit
    exit_not_a_model = 4,     // no valid compiled model
    exit_not_offloaded = 5,   // --require-full-offload
    exit_not_expected = 6,    // run --expect, verify, inspect --against
};

// One line on standard error for each line of the sentence.
void print_error(const Error& error);
// The exit status for an error of the compiler, and of a compiled model.
int exit_of(const Error& error);
int exit_of_model(const Error& error);

// A subcommand gets its own name as argv[0]. It prints results to standard output and everything
// else to standard error.
struct Command {
    const char* name;
    const char* summary;
    int (*run)(int argc, const char* const* argv);
};

// The functions of the table.
int bench(int argc, const char* const* argv);
int camera(int argc, const char* const* argv);
int cameras(int argc, const char* const* argv);
int compile(int argc, const char* const* argv);
int density(int argc, const char* const* argv);
int detect(int argc, const char* const* argv);
int diff(int argc, const char* const* argv);
int doctor(int argc, const char* const* argv);
int import_vvas(int argc, const char* const* argv);
int inspect(int argc, const char* const* argv);
int opstats(int argc, const char* const* argv);
int profile(int argc, const char* const* argv);
int run(int argc, const char* const* argv);
int verify(int argc, const char* const* argv);
int worker(int argc, const char* const* argv);

}  // namespace vartml::tools
