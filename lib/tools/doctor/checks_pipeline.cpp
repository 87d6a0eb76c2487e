// SPDX-License-Identifier: Apache-2.0
// A line of gst-launch: parsed and tried in part by the program vartml-pipeline, then judged.
#include "lib/tools/doctor/checks.h"

#include <algorithm>
#include <filesystem>
#include <string_view>
#include <vector>

#include "lib/base/text.h"
#include "lib/tools/doctor/doctor.h"
#include "lib/tools/doctor/pipeline.h"

namespace vartml::doctor {

namespace {

std::string counted(size_t count, const std::string& what) {
    return std::to_string(count) + ' ' + what + (count == 1 ? "" : "s");
}

}  // namespace

void check_pipeline(Examination& e) {
    if (e.request.pipeline.empty()) return;
    std::string program = e.request.surroundings.pipeline_program;
    if (program.empty()) program = find_gst_program("vartml-pipeline");
    if (program.empty())
        return e.problem(
            "the line cannot be looked at: the program vartml-pipeline, which does it, is not "
            "beside " +
                own_program(),
            how_to_get_gst_program("vartml-pipeline"));
    e.request.progress("trying the part of the pipeline that infers with test pictures");
    const auto pipeline = read_pipeline(program, e.request.pipeline);
    if (!pipeline)
        return e.problem("the line cannot be looked at: " + pipeline.error().message,
                         "gst-launch-1.0 " + e.request.pipeline);
    const size_t before = e.report.problems();
    apply_pipeline_rules(e, *pipeline);
    if (e.report.problems() != before) return;
    e.fine("the line has " + counted(pipeline->elements.size(), "element") + " and can be linked");
    if (pipeline->trial == "done")
        e.fine(
            "its part that infers ran on test pictures; sources, sinks and files were left "
            "alone");
    if (pipeline->trial == "none")
        e.note("nothing in the line infers, so nothing was tried",
               "vartmlinfer model=MODEL ! vartmldecode");
}

// The line to change for each error of our elements, by its id.
namespace {

namespace fs = std::filesystem;
using Message = PipelineMessage;

// The element of the message with another value of the property.
std::string with(const Pipeline& p, const Message& m, const std::string& property,
                 const std::string& value) {
    const PipelineElement* element = p.find(m.element);
    return element ? p.launch_text(*element, {{property, value}}) : property + '=' + value;
}

std::string model_of(const Pipeline& p, const Message& m) {
    const PipelineElement* element = p.find(m.element);
    return element && element->properties.contains("model") ? element->properties.at("model")
                                                            : "MODEL";
}

// The file beside `path` whose name is like its own; "" where there is none.
std::string similar_file(const std::string& path) {
    const fs::path wanted(path), folder = wanted.parent_path();
    std::vector<std::string> names;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(folder.empty() ? "." : folder, error))
        names.push_back(entry.path().filename().string());
    std::ranges::sort(names);
    const std::vector<std::string_view> views(names.begin(), names.end());
    const std::string_view near = nearest_name(wanted.filename().string(), views);
    return near.empty() ? std::string() : (folder / near).string();
}

std::string own_fix(const Pipeline&, const Message& m) {
    return m.fix;
}

std::string no_model(const Pipeline& p, const Message& m) {
    return with(p, m, "model", "MODEL.onnx");
}
std::string compile_again(const Pipeline& p, const Message& m) {
    const std::string model = m.file.empty() ? model_of(p, m) : m.file;
    // Never over a file of another kind, such as a checkpoint.
    std::error_code error;
    const bool may_be_ours = fs::is_directory(model, error) || !fs::path(model).has_extension() ||
                             model.ends_with(".rai") || model.ends_with(".tar.gz");
    return "vartml compile MODEL.onnx" + (may_be_ours ? " -o " + shell_word(model) : "");
}
std::string model_missing(const Pipeline& p, const Message& m) {
    std::error_code error;
    const std::string near = fs::exists(m.file, error) ? "" : similar_file(m.file);
    return near.empty() ? compile_again(p, m) : with(p, m, "model", near);
}
std::string model_unreadable(const Pipeline&, const Message& m) {
    return "sudo chmod -R a+rX " + shell_word(m.file);
}
std::string compile_report(const Pipeline&, const Message& m) {
    return way_out(m.text, m.file);
}
std::string no_compiler(const Pipeline&, const Message&) {
    return "export VARTML_COMPILER=" + own_program();
}
std::string cache(const Pipeline& p, const Message& m) {
    return with(p, m, "cache-dir", "/var/tmp/vartml");
}
std::string any_device(const Pipeline& p, const Message& m) {
    return with(p, m, "device", "auto");
}
std::string expected_value(const Pipeline& p, const Message& m) {
    return m.expected.empty() || m.property.empty() ? m.fix : with(p, m, m.property, m.expected);
}
std::string convert_before(const Pipeline& p, const Message& m) {
    if (!m.fix.empty()) return joined({m.fix, with(p, m, "input-is-tensor", "yes")});
    return with(p, m, "input-is-tensor", "auto");
}
std::string allow_copies(const Pipeline& p, const Message& m) {
    return with(p, m, "copy-policy", "warn") + (m.fix.empty() ? "" : "   (or " + m.fix + ")");
}
std::string allow_fallback(const Pipeline& p, const Message& m) {
    return with(p, m, "on-fallback", "allow");
}
std::string run_alone(const Pipeline& p, const Message& m) {
    return "vartml run " + shell_word(model_of(p, m));
}
std::string sidecar_line(const Pipeline&, const Message& m) {
    const std::string begin = "did you mean '";
    const size_t at = m.text.find(begin);
    const std::string file = m.file.empty() ? "the sidecar" : m.file;
    if (at == m.text.npos) return "correct " + file;
    const size_t from = at + begin.size();
    return m.text.substr(from, m.text.find('\'', from) - from) + "=…   (in " + file + ")";
}
std::string choose_decoder(const Pipeline& p, const Message& m) {
    const std::string key = "x-vartml-decoder=";
    const size_t at = m.fix.find(key);
    if (at == m.fix.npos && !m.fix.empty()) return m.fix;
    const std::string nick = at == m.fix.npos ? "" : m.fix.substr(at + key.size());
    return with(p, m, "decoder", nick.empty() ? "NICK" : nick);
}
std::string right_labels(const Pipeline& p, const Message& m) {
    return m.property == "label-file" && !m.found.empty()
               ? with(p, m, "label-file", "FILE") + "   (a file of " + m.found + " lines)"
               : m.fix;
}
std::string other_labels(const Pipeline& p, const Message& m) {
    const std::string near = similar_file(m.file);
    return with(p, m, "label-file", near.empty() ? "FILE" : near);
}
// What stands between inference and decoder goes behind the decoder.
std::string decode_first(const Pipeline& p, const Message& m) {
    const PipelineElement* decode = p.find(m.element);
    const auto before = p.before(m.element);
    const auto infer = std::ranges::find(before, "vartmlinfer", &PipelineElement::factory);
    if (!decode || infer == before.end()) return m.fix;
    std::string line = joined({p.launch_text(**infer), p.launch_text(*decode)});
    for (const PipelineElement* e : p.between((*infer)->name, decode->name))
        line += " ! " + p.launch_text(*e);
    return line;
}
// A device that this program takes twice, or one that another has.
std::string leave_to_others(const Pipeline& p, const Message& m) {
    const PipelineElement* element = p.find(m.element);
    if (!element || !element->properties.contains("runner-options")) return any_device(p, m);
    PipelineElement plain = *element;
    plain.properties.erase("runner-options");
    return p.launch_text(plain) + "   (without runner-options it takes what is free)";
}

struct Way {
    std::string_view id;
    std::string (*line)(const Pipeline&, const Message&);
};
constexpr Way ways[] = {
    {"infer-no-model", no_model},
    {"infer-model-missing", model_missing},
    {"infer-model-unreadable", model_unreadable},
    {"infer-model-bad", compile_again},
    {"infer-compile", compile_report},
    {"infer-no-compiler", no_compiler},
    {"infer-cache", cache},
    {"infer-device-missing", any_device},
    {"infer-device-busy", leave_to_others},
    {"infer-device-lost", run_alone},
    {"infer-instance-conflict", expected_value},
    {"infer-batch", expected_value},
    {"infer-inputs", own_fix},
    {"infer-caps", convert_before},
    {"infer-copy-forbidden", allow_copies},
    {"infer-fallback", allow_fallback},
    {"infer-run", run_alone},
    {"infer-sidecar", sidecar_line},
    {"dec-sidecar", sidecar_line},
    {"dec-unknown", choose_decoder},
    {"dec-unfit", choose_decoder},
    {"dec-classes", right_labels},
    {"dec-labels", other_labels},
    {"dec-geometry", decode_first},
};

}  // namespace

std::string change_for(const Pipeline& pipeline, const PipelineMessage& message) {
    const auto way = std::ranges::find(ways, message.id, &Way::id);
    std::string line = way == std::end(ways) ? message.fix : way->line(pipeline, message);
    if (!line.empty()) return line;
    const std::string element = message.factory.empty() ? "vartmlinfer" : message.factory;
    return message.property.empty() ? "gst-inspect-1.0 " + element
                                    : with(pipeline, message, message.property, "…");
}

std::string way_out(const std::string& sentence, const std::string& model) {
    const std::string_view line = std::string_view(sentence).substr(0, sentence.find('\n'));
    // "…; give --input-shape images:1,3,<H>,<W> to vartml compile"
    if (const size_t option = line.find("--"); option != line.npos) {
        std::string_view words = line.substr(option);
        for (const std::string_view end : {" to vartml compile", "; ", ", "})
            words = words.substr(0, words.find(end));
        if (words.find(' ') != words.npos)
            return "vartml compile " + shell_word(model) + ' ' + std::string(words);
    }
    const size_t last = line.rfind("; ");
    if (last != line.npos) return std::string(line.substr(last + 2));
    return "ls -l " + shell_word(model);
}

}  // namespace vartml::doctor
