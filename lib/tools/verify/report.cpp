// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/report.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "lib/base/json.h"

namespace vartml::verify {
namespace {

std::string number(double value, const char* format = "%.3g") {
    char text[40];
    std::snprintf(text, sizeof text, format, value);
    return text;
}

std::string count(size_t n, const std::string& one, const std::string& many = "") {
    return std::to_string(n) + ' ' + (n == 1 ? one : many.empty() ? one + 's' : many);
}

std::string samples_text(const Report& r) {
    const std::string frame = "frame of ";
    return r.kind.starts_with(frame)
               ? count(r.samples, r.kind, "frames of " + r.kind.substr(frame.size()))
               : count(r.samples, r.kind);
}

// What the one number that is farthest off means, and why that is no fault.
std::string model_words(const Report& r) {
    const Finding* worst = nullptr;
    for (const Finding& f : r.findings)
        if (f.stage == Stage::model && (!worst || f.of_range > worst->of_range)) worst = &f;
    if (!worst) return {};
    const auto is_same = [](const Finding& f) { return f.stage != Stage::model || f.excess == 0; };
    if (worst->of_range == 0)
        return std::ranges::all_of(r.findings, is_same) ? "the outputs are the same"
                                                        : "what the outputs list is the same";
    constexpr double most_plain = 0.01;
    const double percent = worst->of_range * 100;
    const std::string far = number(percent, percent < 10 ? "%.2g" : "%.0f") + " %";
    if (worst->of_range < most_plain)
        return "no number is farther off than " + far + " of its output's range, which is in " +
               worst->subject;
    return "each output as a whole is as near as it must be.\nThe one number that is farthest "
           "off, in " +
           worst->subject + ", differs by " + far +
           " of that output's range (its greatest less its least number; of a single number the "
           "number itself). That is no fault where the output as a whole is near: " +
           worst->text;
}

std::string detection_words(const Effect& e) {
    std::string text;
    if (e.found == e.expected)
        text += e.expected == 1
                    ? "the one detection is found again"
                    : "all " + std::to_string(e.expected) + " detections are found again";
    else
        text += std::to_string(e.found) + " of " + count(e.expected, "detection") +
                (e.found == 1 ? " is found again" : " are found again");
    if (e.found != 0)
        text += " (worst IoU " + number(e.worst_iou, "%.3f") + ", score off by " +
                number(e.worst_score) + " at most)";
    if (e.missing != 0) text += ", " + std::to_string(e.missing) + " missing";
    if (e.added != 0) text += ", " + std::to_string(e.added) + " new";
    if (e.at_threshold != 0)
        text += ", " + std::to_string(e.at_threshold) + " at the score threshold on one side only";
    return text;
}

// Each kind of result that there is, in its own words.
std::string effect_words(const Effect& e) {
    std::string text;
    const auto add = [&](const std::string& words) { text += (text.empty() ? "" : "; ") + words; };
    if (e.classified != 0)
        add(e.same_class == e.classified
                ? std::string("the top class is the same")
                : "the top class differs in " + std::to_string(e.classified - e.same_class) +
                      " of " + count(e.classified, "frame"));
    if (e.expected + e.added + e.at_threshold != 0) add(detection_words(e));
    const PictureEffect& p = e.picture;
    if (p.maps != 0)
        add(p.same_pixels == 1 ? "every pixel of the class map has the same class"
                               : number(std::floor(10000 * p.same_pixels) / 100, "%.4g") +
                                     " % of the class map's pixels have the same class");
    if (p.points != 0)
        add("the " + count(p.points, "key point") +
            (p.points == 1 ? " is at most " : " are at most ") + number(p.point_shift) +
            " pixels of the input off");
    if (p.embeddings != 0)
        add("the embedding has a cosine of " + number(p.cosine, "%.5g") + " to the reference's");
    if (p.texts != 0)
        add(p.same_texts == p.texts
                ? std::string("the text is the same")
                : "the text differs in " + std::to_string(p.texts - p.same_texts) + " of " +
                      count(p.texts, "frame"));
    return text.empty() ? "decoder " + e.decoder + " finds nothing on either side" : text;
}

std::string capital(std::string text) {
    if (!text.empty() && text[0] >= 'a' && text[0] <= 'z')
        text[0] = static_cast<char>(text[0] - 'a' + 'A');
    return text;
}

// Converters join the names of all that they fused.
std::string shortened(const std::string& name) {
    constexpr size_t most = 60;
    return name.size() <= most ? name : name.substr(0, most) + "…";
}

std::string node_text(const LayerFinding& f) {
    std::string sources;
    for (const std::string& s : f.sources)
        if (s != f.node) sources += (sources.empty() ? "" : ", ") + shortened(s);
    return "tensor '" + shortened(f.tensor) + "' of node '" + shortened(f.node) + "' (" + f.kind +
           (sources.empty() ? "" : ", made of " + sources) + ")";
}

std::string layer_words(const Layers& l) {
    std::string text = "Layers: " + std::to_string(l.compared) + " of " +
                       count(l.in_onnx, "tensor") +
                       " inside the model compared, the others are fused, folded or moved away.\n";
    if (l.first) {
        text += "The first that is beyond tolerance is " + node_text(*l.first) + ": " +
                l.first->text + ".\n";
        if (l.beyond > 1)
            text += std::to_string(l.beyond) + " are beyond it; the worst is " +
                    node_text(*l.worst) + ": " + l.worst->text + ".\n";
    } else if (l.worst) {
        text += "None is beyond tolerance; the worst is " + node_text(*l.worst) + ": " +
                l.worst->text + ".\n";
    }
    return text;
}

std::string verdict(const Report& r) {
    const std::string on = " with " + r.reference + " on " + samples_text(r);
    if (const Finding* fault = r.first_fault()) {
        if (fault->is_undecided)
            return "Whether the compiled model agrees" + on + " cannot be told.\n" +
                   capital(fault->subject) + ": " + fault->text + " (" + fault->sample + ").\n";
        std::string text = "The compiled model does NOT agree" + on +
                           ".\nThe first stage that is beyond tolerance is " +
                           (fault->stage == Stage::suppress || fault->stage == Stage::decode ||
                                    fault->stage == Stage::dequantise
                                ? ""
                                : "the ") +
                           std::string(to_string(fault->stage)) + ": " + fault->subject + ": " +
                           fault->text + " (" + fault->sample + ").\n";
        if (r.effect) text += "In the end " + effect_words(*r.effect) + ".\n";
        return text;
    }
    if (r.effect && r.judge_effect && !r.effect->is_good())
        return "Each stage of the compiled model is within its tolerance" + on +
               ", but together they change what is detected: " + effect_words(*r.effect) + " (" +
               r.effect->sample + "); IoU " + number(r.effect->least_iou) + " and a score within " +
               number(r.effect->most_score) + " are expected.\n";
    std::string text = "The compiled model agrees" + on + ": " + model_words(r) + ".\n";
    if (r.effect) text += capital(effect_words(*r.effect)) + ".\n";
    if (std::ranges::any_of(r.findings, &Finding::is_empty))
        text +=
            "Decode and NMS are not checked: nothing reaches the score threshold; give pictures "
            "of what the model finds.\n";
    return text;
}

std::string table(const std::vector<Finding>& findings) {
    using Row = std::array<std::string, 5>;
    std::vector<Row> rows = {{"stage", "what", "verdict", "worst", "where"}};
    for (const Finding& f : findings)
        rows.push_back({std::string(to_string(f.stage)), f.subject,
                        f.is_empty       ? "-"
                        : f.is_good      ? "good"
                        : f.is_undecided ? "unclear"
                                         : "BAD",
                        f.text, f.sample});
    std::array<size_t, 5> widths{};
    for (const Row& row : rows)
        for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
    std::string text;
    for (const Row& row : rows) {
        for (size_t c = 0; c + 1 < row.size(); ++c)
            text += row[c] + std::string(widths[c] - row[c].size() + 2, ' ');
        text += row.back() + '\n';
    }
    return text;
}

nlohmann::ordered_json layer_json(const LayerFinding& f) {
    return {{"tensor", f.tensor},      {"node", f.node},  {"kind", f.kind},
            {"onnx_nodes", f.sources}, {"worst", f.text}, {"good", f.is_good}};
}

}  // namespace

std::string_view to_string(Stage stage) {
    constexpr std::string_view names[] = {"pre-process", "model", "dequantisation", "decode",
                                          "NMS"};
    return names[static_cast<size_t>(stage)];
}

const Finding* Report::first_fault() const {
    const Finding* first = nullptr;
    const auto place = [](const Finding& f) { return std::pair(f.is_undecided, f.stage); };
    for (const Finding& f : findings)
        if (!f.is_good && (!first || place(f) < place(*first))) first = &f;
    return first;
}

bool Report::is_good() const {
    return !first_fault() && !(effect && judge_effect && !effect->is_good());
}

std::string console_text(const Report& r) {
    std::string text = verdict(r);
    if (r.layers) {
        const Finding* const fault = r.first_fault();
        if (!fault || fault->is_undecided || fault->stage != Stage::model || r.layers->first ||
            !r.layers->ends_agree)
            text += layer_words(*r.layers);
        else
            text += layer_words(*r.layers) +
                    "With these tensors kept the outputs agree too: the fault comes with what the "
                    "device does without them, such as work in place.\n";
    }
    text += '\n' + table(r.findings);
    if (!r.notes.empty()) text += '\n';
    for (const std::string& note : r.notes) text += "note: " + note + '\n';
    text += "\nmodel " + r.model + ", compiled " + r.compiled + "; device " + r.device +
            ", float work in " + r.compute_type + '\n';
    return text;
}

std::string json_text(const Report& r) {
    nlohmann::ordered_json json = {
        {"model", r.model},     {"compiled", r.compiled},         {"reference", r.reference},
        {"device", r.device},   {"compute_type", r.compute_type}, {"sample_kind", r.kind},
        {"samples", r.samples}, {"agrees", r.is_good()}};
    const Finding* fault = r.first_fault();
    const bool is_undecided = fault && fault->is_undecided;
    json["undecided"] = is_undecided;
    json["first_stage_beyond_tolerance"] = fault && !is_undecided
                                               ? nlohmann::ordered_json(to_string(fault->stage))
                                               : nlohmann::ordered_json(nullptr);
    json["stages"] = nlohmann::ordered_json::array();
    for (const Finding& f : r.findings) {
        nlohmann::ordered_json row = {{"stage", to_string(f.stage)},
                                      {"what", f.subject},
                                      {"good", f.is_empty ? nlohmann::ordered_json(nullptr)
                                                          : nlohmann::ordered_json(f.is_good)},
                                      {"worst", f.text},
                                      {"sample", f.sample}};
        if (f.is_undecided) row["undecided"] = true;
        if (f.stage == Stage::model) row["largest_difference_of_range"] = f.of_range;
        json["stages"].push_back(std::move(row));
    }
    if (const auto& e = r.effect)
        json["effect"] = {{"decoder", e->decoder},
                          {"expected", e->expected},
                          {"found_again", e->found},
                          {"missing", e->missing},
                          {"new", e->added},
                          {"at_threshold", e->at_threshold},
                          {"worst_iou", e->worst_iou},
                          {"worst_score_difference", e->worst_score},
                          {"classified", e->classified},
                          {"same_class", e->same_class},
                          {"class_maps", e->picture.maps},
                          {"same_pixels", e->picture.same_pixels},
                          {"keypoints", e->picture.points},
                          {"keypoint_shift", e->picture.point_shift},
                          {"embeddings", e->picture.embeddings},
                          {"embedding_cosine", e->picture.cosine},
                          {"texts", e->picture.texts},
                          {"same_texts", e->picture.same_texts},
                          {"good", e->is_good()}};
    if (const auto& l = r.layers) {
        json["layers"] = {
            {"compared", l->compared}, {"in_onnx", l->in_onnx}, {"beyond_tolerance", l->beyond}};
        if (l->first) json["layers"]["first"] = layer_json(*l->first);
        if (l->worst) json["layers"]["worst"] = layer_json(*l->worst);
    }
    json["notes"] = r.notes;
    return json_file_text(json);
}

}  // namespace vartml::verify
