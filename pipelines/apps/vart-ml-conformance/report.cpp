// SPDX-License-Identifier: Apache-2.0
// The machine, our element on top of the runtime, and what is written of it all.
#include <sys/utsname.h>
#include <sys/wait.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

#include "child.h"

#ifndef VART_ML_CONFORMANCE_VERSION
#define VART_ML_CONFORMANCE_VERSION "(built by hand)"
#endif
#ifndef VART_ML_PACKAGE_VERSION
#define VART_ML_PACKAGE_VERSION "of an unknown version"
#endif

namespace conformance {
namespace {

std::string first_line(const std::string& text) {
    return text.substr(0, text.find('\n'));
}

std::string content(const std::string& file) {
    std::ifstream in(file);
    std::ostringstream text;
    text << in.rdbuf();
    return text.str();
}

// The value of a line that begins so.
std::string value_in(const std::string& text, const std::string& begin) {
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) {
        if (line.compare(0, begin.size(), begin) != 0) continue;
        const size_t at = line.find_first_not_of(" \t:=\"", begin.size());
        std::string value = at == std::string::npos ? "" : line.substr(at);
        while (!value.empty() && (value.back() == '"' || value.back() == ' ')) value.pop_back();
        return value;
    }
    return "";
}

bool worked(const Ended& ended) {
    return ended.in_time && WIFEXITED(ended.status) && WEXITSTATUS(ended.status) == 0;
}

// What separates columns in Markdown stays text.
std::string cell(std::string text) {
    for (size_t at = 0; (at = text.find('|', at)) != std::string::npos; at += 2)
        text.insert(at, "\\");
    return text;
}

// As JSON has it, in ASCII, so that any bytes are text.
std::string quoted(const std::string& text) {
    std::string result = "\"";
    for (const char c : text) {
        const auto byte = static_cast<unsigned char>(c);
        char code[8];
        if (c == '"' || c == '\\') {
            result += {'\\', c};
        } else if (byte < ' ' || byte > '~') {
            std::snprintf(code, sizeof code, "\\u%04x", byte);
            result += code;
        } else {
            result += c;
        }
    }
    return result + "\"";
}

std::string padded(const std::string& text, size_t width) {
    return text.size() >= width ? text + " " : text + std::string(width - text.size(), ' ');
}

void write_markdown(std::ostream& out, const std::string& model, const Facts& facts,
                    const std::vector<Outcome>& outcomes) {
    out << "# vart-ml-conformance\n\nModel: `" << model << "`; " << summary(outcomes)
        << ".\n\n| fact | value |\n|---|---|\n";
    for (const auto& [name, value] : facts) out << "| " << name << " | " << cell(value) << " |\n";
    out << "\nGiven: stated in AMD's public documents. Reading: where they are silent, what "
           "libvartml does.\n"
           "\n| check | by | expected | seen | verdict |\n|---|---|---|---|---|\n";
    for (const Outcome& o : outcomes) {
        const std::string verdict = name_of(o.seen.verdict);
        const bool mark = o.seen.verdict != Verdict::same && o.seen.verdict != Verdict::not_shown;
        out << "| " << o.name << " | " << (o.documented ? "given" : "reading") << " | "
            << cell(o.expected) << " | " << cell(o.seen.text) << " | "
            << (mark ? "**" + verdict + "**" : verdict) << " |\n";
    }
}

void write_json(std::ostream& out, const std::string& model, const Facts& facts,
                const std::vector<Outcome>& outcomes) {
    out << "{\"model\": " << quoted(model) << ",\n\"facts\": {";
    for (size_t i = 0; i < facts.size(); ++i)
        out << (i ? ",\n  " : "\n  ") << quoted(facts[i].first) << ": " << quoted(facts[i].second);
    out << "},\n\"checks\": [";
    for (size_t i = 0; i < outcomes.size(); ++i) {
        const Outcome& o = outcomes[i];
        out << (i ? ",\n  " : "\n  ") << "{\"check\": " << quoted(o.name)
            << ", \"by\": " << (o.documented ? "\"given\"" : "\"reading\"")
            << ", \"expected\": " << quoted(o.expected) << ", \"seen\": " << quoted(o.seen.text)
            << ", \"verdict\": " << quoted(name_of(o.seen.verdict)) << "}";
    }
    out << "]}\n";
}

}  // namespace

Facts machine_facts() {
    Facts facts;
    const auto add = [&](const char* name, std::string value) {
        std::erase(value, '\0');
        if (!value.empty()) facts.push_back({name, value});
    };
    add("program", "vart-ml-conformance " VART_ML_CONFORMANCE_VERSION);
#ifdef VARTML_VERSION
    add("built with", "headers of libvartml " + std::to_string(VARTML_VERSION));
#else
    add("built with", "headers of VART-ML " VART_ML_PACKAGE_VERSION);
#endif
    utsname system{};
    if (uname(&system) == 0)
        add("kernel", std::string(system.sysname) + " " + system.release + " " + system.machine);
    add("system", value_in(content("/etc/os-release"), "PRETTY_NAME"));
    add("board", first_line(content("/proc/device-tree/model")));
    add("processor", value_in(content("/proc/cpuinfo"), "model name"));
    std::string modules;
    std::istringstream lines(content("/proc/modules"));
    for (std::string line; std::getline(lines, line);) {
        const std::string name = line.substr(0, line.find(' '));
        for (const char* known : {"amdxdna", "zocl", "xocl", "ai_engine", "aie", "udmabuf"})
            if (name.find(known) != std::string::npos)
                modules += (modules.empty() ? "" : ", ") + name;
    }
    add("kernel modules", modules);
    for (const auto& [name, command] :
         {std::pair{"XRT", std::vector<std::string>{"xrt-smi", "--version"}},
          {"GStreamer", {"gst-launch-1.0", "--version"}},
          {"wheel vart_ml",
           {"python3", "-c", "import importlib.metadata as m; print(m.version('vart_ml'))"}}}) {
        const Ended ended = run_program(command, std::chrono::seconds(20));
        if (worked(ended)) add(name, first_line(ended.output));
    }
    return facts;
}

Outcome run_element(const std::string& model, std::chrono::seconds limit, Facts& facts) {
    Outcome outcome{"element/vartmlinfer", "infers on 5 pictures with gst-launch-1.0", false, {}};
    const Ended found = run_program({"gst-inspect-1.0", "vartmlinfer"}, limit);
    if (!worked(found)) {
        outcome.seen = not_shown("gst-inspect-1.0 finds no element vartmlinfer");
        return outcome;
    }
    const std::string plugin = value_in(found.output, "  Filename");
    const Ended linked = run_program({"ldd", plugin}, limit);
    std::string runtime = value_in(linked.output, "\tlibvart-ml");
    if (runtime.empty()) runtime = value_in(linked.output, "\tlibvartml-runtime");
    facts.push_back({"plugin", plugin});
    facts.push_back(
        {"runtime of the plugin",
         runtime.substr(runtime.find('/') == std::string::npos ? 0 : runtime.find('/'))});
    const Ended ran = run_program(
        {"gst-launch-1.0", "-q", "videotestsrc", "num-buffers=5", "!", "videoconvertscale", "!",
         "vartmlinfer", "model=" + std::filesystem::absolute(model).string(), "!", "fakesink"},
        limit);
    if (worked(ran)) {
        outcome.seen = same("5 pictures");
    } else if (!ran.in_time) {
        outcome.seen = {Verdict::crashed, "no end within " + std::to_string(limit.count()) + " s"};
    } else {
        std::string error = value_in(ran.output, "ERROR");
        if (error.empty()) error = first_line(ran.output);
        outcome.seen = {WIFSIGNALED(ran.status) ? Verdict::crashed : Verdict::refused,
                        how_it_ended(ran.status) + ": " + error};
    }
    return outcome;
}

std::string summary(const std::vector<Outcome>& outcomes) {
    std::map<Verdict, size_t> counts;
    for (const Outcome& outcome : outcomes) ++counts[outcome.seen.verdict];
    std::string text = std::to_string(outcomes.size()) + " checks";
    for (const auto& [verdict, count] : counts)
        text += ", " + std::to_string(count) + " " + name_of(verdict);
    return text;
}

void print_outcome(const Outcome& outcome) {
    std::printf("%s%s%s%s\n", padded(name_of(outcome.seen.verdict), 10).c_str(),
                padded(outcome.name, 31).c_str(), padded(outcome.expected, 46).c_str(),
                outcome.seen.text.c_str());
    std::fflush(stdout);
}

void write_report(const std::string& file, const std::string& model, const Facts& facts,
                  const std::vector<Outcome>& outcomes) {
    std::ofstream out(file);
    (file.ends_with(".json") ? write_json : write_markdown)(out, model, facts, outcomes);
    out.flush();
    if (!out)
        throw std::runtime_error("cannot write report '" + file +
                                 "'; name another file with --report");
}

}  // namespace conformance
