// SPDX-License-Identifier: Apache-2.0
// Program, compiler, processor, device, caches, peaks, and the plugin.
#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <vartml/processors.h>
#include <vartml/version.h>

#include "lib/base/file.h"
#include "lib/base/places.h"
#include "lib/base/process.h"
#include "lib/model/target.h"
#include "lib/run/memory/xrt_memory.h"
#include "lib/run/softnpu/processor.h"
#include "lib/tools/doctor/checks.h"
#include "lib/tools/doctor/doctor.h"
#include "lib/tools/doctor/peaks.h"
#include "lib/trace/pmu.h"

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
                                 : vartml_program();
    std::string fault;
    if (::access(path.c_str(), X_OK) != 0)
        fault = std::strerror(errno);
    else if (!is_vartml(path))
        fault = "is not the program vartml, because `" + path + " --version` does not say so";
    if (fault.empty()) return e.fine("applications compile .onnx files with " + path);
    e.problem("applications cannot compile .onnx files: " + path + ": " + fault +
                  (is_set ? " (named by VARTML_COMPILER)" : ""),
              "export VARTML_COMPILER=" + shell_word(own_program()));
}

void check_processor(Examination& e) {
    softnpu::obey_instruction_limit();
    const softnpu::Bf16Products products = softnpu::bf16_products();
    const bool bf16 = softnpu::prefers_bf16();
    const unsigned threads = usable_processors();
    e.report.facts["processor"] = processor_model();
    e.report.facts["threads"] = std::to_string(threads);
    e.report.facts["instructions"] = softnpu::instruction_set();
    e.report.facts["compute_type"] = bf16 ? "bf16" : "fp32";
    e.fine(processor_model() + ", " + counted(threads, "processor") + " for this process, " +
           softnpu::instruction_set());
    if (const double quota = processor_quota(); quota > 0) {
        char number[32];
        std::snprintf(number, sizeof number, "%g", quota);
        e.fine("control groups give this process the time of " + std::string(number) +
               (quota == 1 ? " processor" : " processors"));
    }
    e.fine(bf16 ? std::string("float work in bf16")
                : "float work in fp32: the processor " +
                      std::string(products == softnpu::Bf16Products::none
                                      ? "has no bf16 products"
                                      : "multiplies bf16 more slowly"));
    if (softnpu::has_int8_products())
        e.fine("int8 work in int8");
    else if (softnpu::has_int16_products())
        e.note(
            "int8 models compute in products of 16 bits, right but slower: the processor has no "
            "int8 "
            "products");
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

// Memory for tensors, and the device nodes that pipelines use: which there are, and whether this
// user may open them.
namespace {

struct Kind {
    const char* folder;  // below /dev; "" is itself
    const char* prefix;
    const char* what;
    const char* group;  // whose members may open it
};
constexpr Kind kinds[] = {
    {"", "video", "cameras and codecs of V4L2", "video"},
    {"dri", "renderD", "GPUs", "render"},
    {"accel", "accel", "accelerators", "render"},
    {"dma_heap", "", "heaps of DMA-BUFs", "video"},
};

std::vector<std::string> nodes_of(const std::string& folder, const std::string& prefix) {
    std::vector<std::string> nodes;
    const std::unique_ptr<DIR, int (*)(DIR*)> entries(::opendir(folder.c_str()), &::closedir);
    while (const dirent* entry = entries ? ::readdir(entries.get()) : nullptr) {
        const std::string name = entry->d_name;
        if (name[0] != '.' && name.starts_with(prefix)) nodes.push_back(folder + '/' + name);
    }
    std::ranges::sort(nodes);
    return nodes;
}

std::string joined(const std::vector<std::string>& names) {
    std::string text;
    for (const std::string& name : names) text += (text.empty() ? "" : ", ") + name;
    return text;
}

}  // namespace

void check_memory(Examination& e) {
    const Fd memory(::memfd_create("vartml-doctor", MFD_CLOEXEC | MFD_ALLOW_SEALING));
    if (!memory)
        return e.problem(
            std::string("tensors cannot be made: memfd_create: ") + std::strerror(errno),
            "allow memfd_create in the sandbox or container (seccomp)");
    const std::string& path = e.request.surroundings.udmabuf;
    if (::access(path.c_str(), R_OK | W_OK) == 0)
        return e.fine("tensors can be exported as DMA-BUFs through " + path);
    const int reason = errno;
    e.note("tensors are exported as memfds, which GPUs and displays cannot import: " + path + ": " +
               std::strerror(reason),
           reason == EACCES ? "sudo setfacl -m u:$(id -un):rw " + shell_word(path)
                            : "sudo modprobe udmabuf");
}

void check_nodes(Examination& e) {
    for (const Kind& kind : kinds) {
        const std::string folder = e.request.surroundings.dev_folder +
                                   (*kind.folder ? '/' + std::string(kind.folder) : "");
        std::vector<std::string> usable, closed;
        for (const std::string& node : nodes_of(folder, kind.prefix))
            (::access(node.c_str(), R_OK | W_OK) == 0 ? usable : closed).push_back(node);
        if (usable.empty() && closed.empty())
            e.fine("no " + std::string(kind.what) + " (" + folder + '/' + kind.prefix + "*)");
        if (!usable.empty()) e.fine(std::string(kind.what) + ": " + joined(usable));
        if (!closed.empty())
            e.note(
                std::string(kind.what) + " that this user may not open: " + joined(closed),
                std::string("sudo usermod -aG ") + kind.group + " $(id -un)   (then log in again)");
    }
}

// XRT: absent, not used by this build, not fitting it, or fine. Its version is read from the name
// of its library.
namespace {

namespace fs = std::filesystem;

struct Xrt {
    std::string file, version;
};

std::vector<std::string> usual_folders() {
    std::vector<std::string> folders;
    // given: XRT's setup.sh sets it.
    if (const char* root = std::getenv("XILINX_XRT"); root && *root)
        folders.push_back(std::string(root) + "/lib");
    for (const char* folder : {"/opt/xilinx/xrt/lib", "/usr/local/lib", "/usr/lib",
                               "/usr/lib/x86_64-linux-gnu", "/usr/lib/aarch64-linux-gnu"})
        folders.emplace_back(folder);
    return folders;
}

std::optional<Xrt> find_xrt(const std::string& folder) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        const std::string name = entry.path().filename().string();
        int major, minor;
        // Links of shorter versions lead to the file itself.
        if (std::sscanf(name.c_str(), "libxrt_coreutil.so.%d.%d", &major, &minor) == 2)
            return Xrt{entry.path().string(), std::to_string(major) + '.' + std::to_string(minor)};
    }
    return std::nullopt;
}

}  // namespace

void check_xrt(Examination& e) {
    std::vector<std::string> folders = e.request.surroundings.xrt_folders;
    if (folders.empty()) folders = usual_folders();
    std::optional<Xrt> xrt;
    for (size_t i = 0; i < folders.size() && !xrt; ++i) xrt = find_xrt(folders[i]);
    if (!xrt) return e.fine("XRT is not installed; only boards that share memory with it need it");
    const std::string found = "XRT " + xrt->version + " (" + xrt->file + ")";
    e.report.facts["xrt"] = xrt->version;
    if (std::error_code error; !fs::exists(xrt_module(), error))
        return e.fine(found + "; this package is installed without the module that uses it");
    const auto memory = runtime::xrt_memory(0);
    if (memory) return e.fine(found + "; vartml_memory=xrt takes the memory of its device 0");
    if (memory.error().code == ErrorCode::not_found)
        return e.fine(found + "; it has no device whose memory vartml_memory=xrt could take");
    e.problem(found + " does not fit this package: " + memory.error().message,
              "build this package where this XRT is installed, or source the setup.sh of the XRT "
              "that it was built with");
}

namespace {

namespace fs = std::filesystem;

constexpr const char* library = "libgstvartml.so";

struct Answer {
    bool is_there = false;  // the program
    int status = -1;
    std::vector<std::string> lines;
};

// What `gst-inspect-1.0 ARGUMENT` says on both streams.
Answer ask(const std::string& program, const std::string& argument) {
    Answer answer;
    Child child;
    child.arguments = {"/bin/sh", "-c", R"(exec "$0" "$1" >&3 2>&1)", program, argument};
    child.on_line = [&](std::string_view line) { answer.lines.emplace_back(line); };
    const auto result = run_child(child);
    constexpr int not_found = 127, not_executable = 126;  // given: POSIX, "Shell Command Language"
    if (!result || result->exit_status == not_found || result->exit_status == not_executable)
        return answer;
    answer.is_there = true;
    answer.status = result->exit_status;
    return answer;
}

bool holds_plugin(const fs::path& folder) {
    std::error_code error;
    return fs::exists(folder / library, error);
}

// Where the plugin lies beside this program: PREFIX/lib[/TRIPLET]/gstreamer-1.0 of
// PREFIX/bin/vartml, or gst/ of a build folder; "" where it does not.
std::string plugin_folder() {
    std::error_code error;
    const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
    std::vector<fs::path> candidates = {folder / "../../gst"};
    for (const char* name : {"../lib", "../lib64"}) {
        candidates.push_back(folder / name / "gstreamer-1.0");
        for (const auto& entry : fs::directory_iterator(folder / name, error))
            candidates.push_back(entry.path() / "gstreamer-1.0");
    }
    for (const fs::path& candidate : candidates)
        if (holds_plugin(candidate)) return fs::weakly_canonical(candidate, error).string();
    return {};
}

// "  Version                  1.0.0" of the plugin's details.
std::string detail(const Answer& answer, const std::string& key) {
    for (const std::string& line : answer.lines) {
        const size_t at = line.find_first_not_of(' ');
        if (at == line.npos || line.compare(at, key.size(), key) != 0) continue;
        const size_t value = line.find_first_not_of(' ', at + key.size());
        if (value != line.npos && value > at + key.size()) return line.substr(value);
    }
    return {};
}

void check_found(Examination& e, const std::string& gstreamer, const Answer& element) {
    const std::string file = detail(element, "Filename"), theirs = detail(element, "Version");
    const std::string ours(version());
    if (!file.empty()) e.report.facts["plugin"] = file;
    if (theirs.empty() || theirs == ours)
        return e.fine(gstreamer + " finds vartmlinfer" +
                      (file.empty() ? "" : " " + theirs + " in " + file));
    const std::string beside = plugin_folder();
    e.problem(
        gstreamer + " finds vartmlinfer in " + file + ", which is of version " + theirs +
            ", but this program and its libraries are " + ours,
        beside.empty() ? "rm " + shell_word(file) : "export GST_PLUGIN_PATH=" + shell_word(beside));
}

}  // namespace

void check_plugin(Examination& e) {
    const std::string& inspect = e.request.surroundings.gst_inspect;
    const Answer version = ask(inspect, "--version");
    if (!version.is_there)
        return e.note(
            "GStreamer's tools are not installed, so the plugin was not looked for; only "
            "pipelines need them",
            "sudo apt-get install gstreamer1.0-tools");
    // Warnings of a plugin that is broken may stand before it.
    const auto named = std::ranges::find_if(
        version.lines, [](const std::string& line) { return line.starts_with("GStreamer "); });
    const std::string gstreamer = named == version.lines.end() ? "GStreamer" : *named;
    e.report.facts["gstreamer"] = gstreamer;
    const Answer element = ask(inspect, "vartmlinfer");
    if (element.status == 0) return check_found(e, gstreamer, element);
    for (const std::string& line : ask(inspect, "-b").lines)
        if (line.find(library) != line.npos)
            return e.problem(gstreamer + " keeps " + library +
                                 " on its black list, because loading it failed once",
                             "rm ~/.cache/gstreamer-1.0/registry.*.bin; GST_DEBUG=2 " + inspect +
                                 " vartmlinfer");
    std::string folder = e.request.surroundings.plugin_folder;
    if (folder.empty()) folder = plugin_folder();
    if (folder.empty())
        return e.note(gstreamer + " does not find vartmlinfer, and " + library +
                      " is not beside this program; only pipelines need it");
    e.problem(gstreamer + " does not find vartmlinfer: " + folder + " is not on its path",
              "export GST_PLUGIN_PATH=" + shell_word(folder));
}

// Known defects of this GStreamer, where something at hand runs into them: an environment variable,
// or an element of the pipeline.
namespace {

struct Defect {
    const char* variable;  // or nullptr
    const char* word;      // in the variable, or in the pipeline
    Version fixed;
    Level level;
    const char* text;
    const char* change;
};
// given: release notes of GStreamer 1.26; the same as tests/gst/traps.cpp looks at
constexpr Defect defects[] = {
    {"GST_TRACERS",
     "latency",
     {1, 26, 4},
     Level::problem,
     "the tracer 'latency' of GST_TRACERS deadlocks every pipeline",
     "unset GST_TRACERS"},
    {nullptr,
     "ssdobjectdetector",
     {1, 26, 4},
     Level::note,
     "ssdobjectdetector reads scores that are not float32 wrongly",
     "vartmldecode decoder=ssd"},
    {nullptr,
     "ssdtensordec",
     {1, 26, 4},
     Level::note,
     "ssdtensordec reads scores that are not float32 wrongly",
     "vartmldecode decoder=ssd"},
    {nullptr,
     "objectdetectionoverlay",
     {1, 26, 3},
     Level::note,
     "objectdetectionoverlay leaks its canvas when it stops",
     ""},
    {nullptr,
     "v4l2src",
     {1, 26, 7},
     Level::note,
     "v4l2src leaks caps each time that it negotiates",
     ""},
};

std::string dotted(const Version& v) {
    return std::to_string(v[0]) + '.' + std::to_string(v[1]) + '.' + std::to_string(v[2]);
}

bool is_met(const Defect& defect, const std::string& pipeline) {
    const char* variable = defect.variable ? std::getenv(defect.variable) : nullptr;
    const std::string text = defect.variable ? (variable ? variable : "") : pipeline;
    return text.find(defect.word) != text.npos;
}

}  // namespace

Version gstreamer_version(const Examination& e) {
    const auto fact = e.report.facts.find("gstreamer");
    Version here{};
    if (fact == e.report.facts.end() ||
        std::sscanf(fact->second.c_str(), "GStreamer %d.%d.%d", &here[0], &here[1], &here[2]) != 3)
        return {};
    return here;
}

void check_defects(Examination& e) {
    constexpr Version oldest = {1, 26, 0};
    const Version here = gstreamer_version(e);
    if (here == Version{}) return;
    if (here < oldest)
        return e.problem(
            "GStreamer " + dotted(here) + " is too old, the plugins need " + dotted(oldest),
            "use Debian 13, or its root: ./dev shell");
    bool any = false;
    for (const Defect& defect : defects) {
        if (here >= defect.fixed || !is_met(defect, e.request.pipeline)) continue;
        any = true;
        const std::string text =
            defect.text + ("; GStreamer " + dotted(defect.fixed)) + " corrects it";
        if (defect.level == Level::problem)
            e.problem(text, defect.change);
        else
            e.note(text, defect.change);
    }
    if (!any) e.fine("GStreamer " + dotted(here) + " has no known defect that matters here");
}

}  // namespace vartml::doctor
