// SPDX-License-Identifier: Apache-2.0
// Program, compiler, processor, device, caches and peaks.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>

#include <vartml/version.h>

#include "lib/common/cache_folder.h"
#include "lib/common/file.h"
#include "lib/common/installed.h"
#include "lib/common/process.h"
#include "lib/common/processors.h"
#include "lib/device/softnpu/processor.h"
#include "lib/device/target.h"
#include "lib/doctor/calibrate.h"
#include "lib/doctor/checks.h"
#include "lib/doctor/machine.h"
#include "lib/profiling/pmu.h"

namespace vartml::doctor {
namespace {

constexpr const char* other_cache = "export XDG_CACHE_HOME=/var/tmp/$(id -un)";

std::string counted(unsigned count, const std::string& what) {
    return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

// 123.4 G of `per_second`.
std::string giga(double per_second, const char* unit) {
    char text[64];
    std::snprintf(text, sizeof text, "%.1f G%s/s", per_second / 1e9, unit);
    return text;
}

std::string described(const Peaks& p) {
    std::string text = counted(p.key.threads, "thread") + ": ";
    for (const char* type : {"bf16", "fp32", "int8"}) {
        const auto rate = ops_per_second(p, type);
        text += std::string(type) + ' ' + (rate ? giga(*rate, "op") : "absent") + ", ";
    }
    return text + "memory " + giga(p.bytes_per_second, "B");
}

// Makes the folder where it is missing, and a file in it for a moment.
Result<void> try_to_write(const std::string& folder) {
    if (auto made = make_directories(folder); !made) return made;
    std::string name = folder + "/.doctor-XXXXXX";
    const Fd fd(::mkostemp(name.data(), O_CLOEXEC));
    if (!fd) return system_error(folder, "create a file in the folder", errno);
    ::unlink(name.c_str());
    return {};
}

bool is_vartml(const std::string& program) {
    Child child;
    child.arguments = {"/bin/sh", "-c", R"(exec "$0" --version >&3 2>/dev/null)", program};
    bool named = false;
    child.on_line = [&](std::string_view line) { named = named || line.starts_with("vartml "); };
    const auto ended = run_child(child);
    return ended && ended->exit_status == 0 && named;
}

}  // namespace

void check_program(Examination& e) {
    const std::string version_text(version());
    e.report.facts["version"] = version_text;
    e.report.facts["commit"] = source_commit();
    e.report.facts["onednn"] = softnpu::onednn_version();
    e.fine("vartml " + version_text + ", commit " + std::string(source_commit().substr(0, 12)) +
           ", oneDNN " + softnpu::onednn_version());
}

void check_compiler(Examination& e) {
    const char* const variable = std::getenv("VARTML_COMPILER");
    const bool is_set = e.request.surroundings.compiler.empty() && variable && *variable;
    const std::string path = !e.request.surroundings.compiler.empty()
                                 ? e.request.surroundings.compiler
                             : is_set ? std::string(variable)
                                      : std::string(installed_compiler());
    std::string fault;
    if (::access(path.c_str(), X_OK) != 0)
        fault = std::strerror(errno);
    else if (!is_vartml(path))
        fault = "is not the program vartml, because `" + path + " --version` does not say so";
    if (fault.empty()) return e.fine("applications compile .onnx files with " + path);
    e.problem("applications cannot compile .onnx files: " + path + ": " + fault +
                  (is_set ? " (named by VARTML_COMPILER)" : ""),
              "export VARTML_COMPILER=" + own_program());
}

void check_processor(Examination& e) {
    const bool bf16 = softnpu::has_bf16_products();
    const unsigned threads = usable_processors();
    e.report.facts["processor"] = processor_model();
    e.report.facts["threads"] = std::to_string(threads);
    e.report.facts["instructions"] = softnpu::instruction_set();
    e.report.facts["compute_type"] = bf16 ? "bf16" : "fp32";
    e.fine(processor_model() + ", " + counted(threads, "processor") + " for this process, " +
           softnpu::instruction_set());
    e.fine(bf16 ? std::string("float work in bf16")
                : std::string("float work in fp32: the processor has no bf16 products"));
    if (softnpu::has_int8_products())
        e.fine("int8 work in int8");
    else
        e.note("int8 models compute in fp32, right but slower: the processor has no int8 products");
    for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"})
        if (const char* limit = std::getenv(name);
            limit && *limit && std::strcmp(limit, "DEFAULT") != 0 && std::strcmp(limit, "ALL") != 0)
            e.note(std::string(name) + "=" + limit + " hides instructions of the processor",
                   std::string("unset ") + name);
}

void check_device(Examination& e) {
    e.report.facts["device"] = "softnpu";
    std::string names;
    for (const std::string_view name : device::target_names())
        names += (names.empty() ? "" : ", ") + std::string(name);
    e.fine("the software NPU answers, with " + counted(usable_processors(), "core") +
           "; programs compiled for " + names + " run on it");
}

void check_cache(Examination& e) {
    std::string folder = e.request.surroundings.cache_folder;
    if (folder.empty()) folder = user_cache_folder();
    if (folder.empty())
        return e.problem(
            "neither XDG_CACHE_HOME nor HOME says where compiled models can be kept, so each "
            "start compiles again",
            other_cache);
    const auto written = try_to_write(folder);
    if (written) return e.fine("compiled models and peaks are kept in " + folder);
    e.problem("compiled models cannot be kept, so vartmlinfer refuses .onnx files: " +
                  written.error().message,
              other_cache);
}

// Measures where asked, else tells what is kept.
void check_peaks(Examination& e) {
    const std::string& folder = e.request.surroundings.cache_folder;
    double load = 0;
    if (e.request.calibrate && ::getloadavg(&load, 1) == 1 && load > 0.5 * usable_processors()) {
        char text[32];
        std::snprintf(text, sizeof text, "%.1f", load);
        e.note(std::string("other programs were busy (load ") + text +
                   " of the last minute), so the peaks may be too low",
               "vartml doctor --calibrate");
    }
    std::vector<unsigned> counts = {usable_processors()};
    if (counts[0] > 1) counts.push_back(1);
    for (const unsigned threads : counts) {
        auto peaks = read_peaks(peaks_key(threads), folder);
        const bool was_damaged = !peaks && peaks.error().code == ErrorCode::bad_model;
        if (e.request.calibrate) {
            if (was_damaged)
                e.note(peaks.error().message.substr(0, peaks.error().message.find(',')) +
                       ", so it was measured again");
            peaks = measure_peaks(threads, {}, e.request.progress);
            if (!peaks)
                return e.problem("peaks: " + peaks.error().message, "vartml doctor --calibrate");
            if (const auto kept = write_peaks(*peaks, folder); !kept)
                e.problem("the peaks cannot be kept: " + kept.error().message, other_cache);
        }
        if (peaks) {
            e.fine(described(*peaks));
            e.report.peaks.push_back(*peaks);
        } else if (was_damaged) {
            e.problem(peaks.error().message, "vartml doctor --calibrate");
        } else {
            return e.note("the peaks of this machine were not measured yet, so verdicts lack them",
                          "vartml doctor --calibrate");
        }
    }
}

// Of the recipes of `vartml compile --pmu-recipe`, opened as a run opens them: what would be
// missing in it, and why.
void check_counters(Examination& e) {
    std::string counted;
    std::map<std::string, std::string> refused;  // names, by reason
    const auto add = [](std::string& names, const std::string& name) {
        names += (names.empty() ? "" : ", ") + name;
    };
    for (const char* recipe : {"KernelUtil", "AxiRdWr"}) {
        const profiling::PmuCounters counters({recipe, {}});
        for (const profiling::PmuEvent& event : counters.events())
            add(event.status == 0 ? counted : refused[profiling::pmu_reason(event.status)],
                event.name);
    }
    if (!counted.empty()) e.fine("profiling counts " + counted);
    for (const auto& [reason, names] : refused)
        e.note("profiling will not count " + names + ": " + reason,
               reason.find("perf_event_paranoid") == reason.npos
                   ? ""
                   : "sudo sysctl kernel.perf_event_paranoid=2");
}

}  // namespace vartml::doctor
