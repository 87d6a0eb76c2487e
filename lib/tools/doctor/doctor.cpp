// SPDX-License-Identifier: Apache-2.0
// The table of checks, and the report as text and JSON.
#include "lib/tools/doctor/doctor.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <nlohmann/json.hpp>

#include "lib/base/json.h"
#include "lib/tools/doctor/checks.h"

namespace vartml::doctor {

namespace fs = std::filesystem;

namespace {

struct Check {
    const char* name;
    void (*run)(Examination&);
};
// In the order of the report: what else fails because of it comes later. A check adds any number of
// findings.
constexpr Check checks[] = {
    {"program", check_program},     {"compiler", check_compiler}, {"cache", check_cache},
    {"processor", check_processor}, {"device", check_device},     {"memory", check_memory},
    {"nodes", check_nodes},         {"xrt", check_xrt},           {"plugin", check_plugin},
    {"gstreamer", check_defects},   {"pipeline", check_pipeline}, {"model", check_model},
    {"peaks", check_peaks},         {"counters", check_counters},
};

const char* name_of(Level level) {
    switch (level) {
        case Level::problem:
            return "problem";
        case Level::note:
            return "note";
        default:
            return "ok";
    }
}

std::string counted(unsigned count, const std::string& what) {
    return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

// A change of several lines, below its first.
std::string indented(std::string text) {
    const std::string indent(17, ' ');
    for (size_t at = text.find('\n'); at != text.npos; at = text.find('\n', at + 1))
        text.insert(at + 1, indent);
    return text;
}

}  // namespace

unsigned Report::problems() const {
    return static_cast<unsigned>(std::ranges::count(findings, Level::problem, &Finding::level));
}

Report examine(const Request& request) {
    Report report;
    for (const Check& check : checks) {
        const size_t before = report.findings.size();
        Examination examination{request, report};
        check.run(examination);
        for (size_t i = before; i < report.findings.size(); ++i)
            report.findings[i].check = check.name;
    }
    std::ranges::stable_partition(report.findings,
                                  [](const Finding& f) { return f.level == Level::problem; });
    return report;
}

std::string text_of(const Report& report) {
    std::string text;
    for (const Finding& f : report.findings) {
        std::string head = name_of(f.level);
        head.resize(9, ' ');
        text += head + f.check + ": " + f.text + '\n';
        if (!f.change.empty()) text += "         change: " + indented(f.change) + '\n';
    }
    const unsigned problems = report.problems();
    return text + (problems ? counted(problems, "problem") : "no problem") + '\n';
}

std::string json_of(const Report& report) {
    nlohmann::ordered_json json;
    for (const auto& [key, value] : report.facts) json["facts"][key] = value;
    json["peaks"] = nlohmann::ordered_json::array();
    for (const Peaks& p : report.peaks) {
        nlohmann::ordered_json rates;
        for (const char* type : {"fp32", "bf16", "int8"}) {
            const auto rate = ops_per_second(p, type);
            rates[type] = rate ? nlohmann::ordered_json(*rate) : nlohmann::ordered_json();
        }
        json["peaks"].push_back({{"threads", p.key.threads},
                                 {"ops_per_second", rates},
                                 {"bytes_per_second", p.bytes_per_second}});
    }
    json["findings"] = nlohmann::ordered_json::array();
    for (const Finding& f : report.findings)
        json["findings"].push_back({{"level", name_of(f.level)},
                                    {"check", f.check},
                                    {"id", f.id},
                                    {"text", f.text},
                                    {"change", f.change}});
    json["problems"] = report.problems();
    // A path may hold any bytes.
    return json_file_text(json);
}

namespace {

// The text after `key`, blanks and a colon, of the first such line; "" where there is none.
std::string value_of(const char* file, const std::string& key) {
    std::ifstream stream(file);
    for (std::string line; std::getline(stream, line);) {
        const size_t colon = line.find(':');
        if (!line.starts_with(key) || colon == line.npos) continue;
        const size_t begin = line.find_first_not_of(" \t", colon + 1);
        return begin == line.npos ? std::string() : line.substr(begin);
    }
    return {};
}

}  // namespace

std::string processor_model() {
    std::string name = value_of("/proc/cpuinfo", "model name");
    utsname system{};
    if (name.empty() && uname(&system) == 0) name = system.machine;
    return name;
}

std::string own_program() {
    char path[4096];
    const ssize_t length = ::readlink("/proc/self/exe", path, sizeof path);
    return length > 0 ? std::string(path, static_cast<size_t>(length)) : std::string("vartml");
}

std::string shell_word(const std::string& word) {
    const auto is_plain = [](char c) {
        return (c & 0x80) != 0 || std::isalnum(static_cast<unsigned char>(c)) != 0 ||
               std::string_view("_./=:,+-@%").find(c) != std::string_view::npos;
    };
    if (!word.empty() && std::ranges::all_of(word, is_plain)) return word;
    std::string quoted = "'";
    for (const char c : word) quoted += c == '\'' ? "'\\''" : std::string(1, c);
    return quoted + '\'';
}

std::string find_gst_program(const std::string& name) {
    std::error_code error;
    const fs::path folder = fs::path(own_program()).parent_path();
    for (const char* place : {"../../gst", "../libexec", "."})
        if (const fs::path path = folder / place / name; fs::exists(path, error))
            return fs::weakly_canonical(path, error).string();
    return {};
}

// In a build folder it may only not be built; whether it can be, the build's own list says.
std::string how_to_get_gst_program(const std::string& name, const std::string& options) {
    std::error_code error;
    const fs::path build =
        fs::weakly_canonical(fs::path(own_program()).parent_path() / "../..", error);
    std::ifstream list(build / "build.ninja");
    if (!list) return "install gst-vartml with its plugins: meson setup build " + options;
    for (std::string line; std::getline(list, line);)
        if (line.starts_with("build gst/" + name + ":"))
            return "ninja -C " + shell_word(build.string()) + " user";
    return "meson setup --reconfigure " + shell_word(build.string()) + " " + options;
}

uint64_t available_memory_bytes() {
    return std::strtoull(value_of("/proc/meminfo", "MemAvailable").c_str(), nullptr, 10) * 1024;
}

}  // namespace vartml::doctor
