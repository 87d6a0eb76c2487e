// SPDX-License-Identifier: Apache-2.0
// The state of the system in plain words: what is installed, which device answers, whether a model
// fits it, and the line to change.
#pragma once
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "lib/tools/doctor/peaks.h"

namespace vartml::doctor {

// A problem keeps something from working; a note is a choice or a lack that nothing depends on.
enum class Level { problem, note, fine };

struct Finding {
    Level level = Level::fine;
    std::string check;    // its name in the table of checks
    std::string text;     // one sentence
    std::string change;   // a line to type or to change; "" where there is nothing to do
    std::string id = {};  // stable, of what is wrong with a pipeline: "dec-geometry"; "" elsewhere
};

// Where the doctor looks; tests put other things there.
struct Surroundings {
    std::string cache_folder;  // vartml's own; "": the user's
    std::string udmabuf = "/dev/udmabuf";
    std::string gst_inspect = "gst-inspect-1.0";  // a path, or a name in PATH
    std::string compiler;                         // "": what compile_onnx() would run
    std::string plugin_folder;                    // "": looked for beside this program
    std::string pipeline_program;                 // "": looked for beside this program
    std::string dev_folder = "/dev";
    std::vector<std::string> xrt_folders;  // of libraries; empty: where XRT may be
};

struct Request {
    // Compiled models, or .onnx files, which are compiled into the cache.
    std::vector<std::string> models;
    std::string pipeline;  // a line of gst-launch; "": none
    bool calibrate = false;
    Surroundings surroundings = {};
    std::function<void(const std::string&)> progress = [](const std::string&) {};
};

struct Report {
    std::vector<Finding> findings;             // problems first, then in the order of the checks
    std::map<std::string, std::string> facts;  // "processor", "compute_type", … for programs
    std::vector<Peaks> peaks;                  // all threads, then one thread, where known
    unsigned problems() const;
};

Report examine(const Request& request);

// A line per finding, and its change below it.
std::string text_of(const Report& report);
std::string json_of(const Report& report);

// Which machine this is.

// "Intel(R) Xeon(R) Processor @ 2.80GHz"; where the system gives no name, its architecture.
std::string processor_model();

// Path of the running program.
std::string own_program();

// Programs of gst/ are children of this one, which links no GStreamer.

// Path of the program beside this one in a build folder, or in libexec once installed; "" where it
// is in neither.
std::string find_gst_program(const std::string& name);
// What to type where it is not there; `options` are those of meson that build it.
std::string how_to_get_gst_program(const std::string& name,
                                   const std::string& options = "-Dgst=enabled");

// That programs can still take; 0 where the system does not say.
uint64_t available_memory_bytes();

}  // namespace vartml::doctor
