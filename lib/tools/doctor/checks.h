// SPDX-License-Identifier: Apache-2.0
// The checks of the doctor: one function each, one row each in the table of doctor.cpp.
#pragma once
#include <array>
#include <string>

#include "lib/tools/doctor/doctor.h"

namespace vartml::doctor {

// What a check sees, and adds its findings to. `check` is filled in by the table.
struct Examination {
    const Request& request;
    Report& report;

    void fine(std::string text) { add(Level::fine, std::move(text), {}, {}); }
    void note(std::string text, std::string change = {}, std::string id = {}) {
        add(Level::note, std::move(text), std::move(change), std::move(id));
    }
    void problem(std::string text, std::string change, std::string id = {}) {
        add(Level::problem, std::move(text), std::move(change), std::move(id));
    }

private:
    void add(Level level, std::string text, std::string change, std::string id) {
        report.findings.push_back({level, {}, std::move(text), std::move(change), std::move(id)});
    }
};

using Version = std::array<int, 3>;

// Zeros where check_plugin() has not found any.
Version gstreamer_version(const Examination& e);

void check_program(Examination& e);
void check_compiler(Examination& e);
void check_processor(Examination& e);
void check_device(Examination& e);
void check_memory(Examination& e);
void check_nodes(Examination& e);
void check_xrt(Examination& e);
void check_cache(Examination& e);
void check_plugin(Examination& e);
void check_peaks(Examination& e);
void check_counters(Examination& e);
void check_defects(Examination& e);   // of this GStreamer
void check_pipeline(Examination& e);  // no finding without a line
void check_model(Examination& e);     // no finding without a model

// The word as a shell reads it: in quotes where it holds what a shell takes for something else.
std::string shell_word(const std::string& word);

// What to do about a model that cannot be compiled.

// The line to change or to type after the compiler's sentence about the model: the way out that
// ends the sentence, as a command where it is an option of the compiler. Never the command that has
// just failed.
std::string way_out(const std::string& sentence, const std::string& model);

}  // namespace vartml::doctor
