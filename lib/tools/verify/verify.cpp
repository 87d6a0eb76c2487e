// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/verify.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <tuple>
#include <utility>

#include "lib/compile/connect.h"
#include "lib/compile/onnx/rounded.h"
#include "lib/model/entries.h"
#include "lib/tools/verify/agreement.h"
#include "lib/tools/verify/compare.h"
#include "lib/tools/verify/feed.h"
#include "lib/tools/verify/folder_check.h"
#include "lib/tools/verify/judge.h"
#include "lib/tools/verify/made_input.h"
#include "lib/tools/verify/onnxruntime.h"
#include "lib/tools/verify/reference.h"
#include "lib/tools/verify/session.h"
#include "lib/tools/verify/stages.h"

namespace vartml::verify {
namespace {

constexpr const char* stored_instead =
    "; or give --inputs with a folder that also has output_<i>.npy or .pb";

class Verification {
public:
    Verification(const Request& request, const Stages& stages, Session session)
        : request_(request),
          stages_(stages),
          session_(std::move(session)),
          info_(request.info),
          sizes_(feed_sizes(info_, session_.inputs())),
          feeder_(session_, info_, request.decoder, request.pixels_from) {}

    Result<Report> run();

private:
    Session::Options options() const {
        return {.numerics = request_.numerics, .device = request_.device};
    }
    std::string output_name(size_t i) const {
        return "output '" + session_.outputs()[i].name + "'";
    }

    Result<void> prepare();
    Result<void> look_for_codes();
    Result<void> open_decoder();

    Result<void> add(const Sample& sample);
    std::vector<OnnxRuntime::Named> named_inputs(const Fed& fed) const;
    Result<std::vector<TensorData>> expect(const Sample& sample, const Fed& fed);
    Result<std::vector<TensorData>> check_model(const Sample& sample,
                                                const std::vector<Buffer>& out,
                                                const std::vector<TensorData>& expected,
                                                const Fed& fed);
    using Outputs = std::map<std::string, TensorData>;
    Result<std::optional<Outputs>> run_rounded(const Fed& fed);
    Result<void> add_references(std::vector<ExpectedOutput>& expected, const Fed& fed);
    Result<std::vector<Judgement>> judge_by_rule(const std::vector<TensorData>& values,
                                                 const std::vector<TensorData>& expected,
                                                 const Fed& fed);
    Result<std::vector<Judgement>> judge_by_tolerance(const std::vector<TensorData>& values,
                                                      const std::vector<TensorData>& expected,
                                                      const std::string& sample) const;
    Rule rule() const {
        return was_quantised_               ? Rule::made_int8
               : request_.numerics == "f32" ? Rule::f32
                                            : Rule::standard;
    }
    Result<void> check_dequantise(const Sample& sample, const std::vector<Buffer>& out,
                                  const std::vector<TensorData>& values);
    Result<void> check_decode(const Sample& sample, const std::vector<Buffer>& out,
                              const std::vector<TensorData>& values, const Frame& frame);
    Result<void> check_effect(const Sample& sample, const Fed& fed, const std::vector<Buffer>& out,
                              const std::vector<TensorData>& expected);
    std::vector<OutputTensor> tensors(const std::vector<Buffer>& out) const;
    void record(Stage stage, const std::string& subject, const Judgement& j,
                const std::string& sample);
    Result<void> look_inside(const Sample& sample, const Fed& fed);

    const Request& request_;
    const Stages& stages_;
    Session session_;
    ModelInfo info_;
    const std::vector<std::string> sizes_;  // inputs that no sidecar names
    const Feeder feeder_;
    std::optional<OnnxRuntime> onnxruntime_;
    std::string why_no_onnxruntime_;
    std::optional<DecodePath> decode_;
    bool was_quantised_ = false;  // by vartml compile --quantize
    std::string why_no_rounded_;  // why there is no rounded twin; told once
    Report report_;
};

// ---- before the first frame

// What nobody asked for need not be there.
Result<void> Verification::open_decoder() {
    const bool asked = !request_.decoder.empty() || !info_.decoder.empty();
    if (!feeder_.picture()) {
        const std::string why = "no input is a picture";
        if (!request_.decoder.empty())
            return Error{ErrorCode::invalid_argument, "--decoder: " + why};
        report_.notes.push_back("decode and NMS were not checked: " + why);
        return {};
    }
    const PictureShape shape = picture_shape(session_.inputs()[*feeder_.picture()].cpu);
    auto path =
        DecodePath::create(info_, session_.outputs(), shape.width, shape.height, request_.decoder);
    if (path) {
        decode_.emplace(std::move(*path));
        return {};
    }
    if (asked) return Error{ErrorCode::invalid_argument, path.error().message};
    report_.notes.push_back("decode and NMS were not checked: " + path.error().message);
    return {};
}

Result<void> Verification::look_for_codes() {
    const auto model = artifact::read(request_.compiled);
    if (!model) return model.error();
    // Where the ONNX file cannot be imported, the tolerances of its types hold.
    const auto quantised = compiler::was_quantised(*model, request_.model);
    was_quantised_ = quantised && *quantised;
    if (was_quantised_)
        report_.notes.push_back(
            "the compiled model is int8 and the ONNX file is float: outputs are to reach a cosine "
            "of 0.99");
    return {};
}

Result<void> Verification::prepare() {
    report_.model = request_.model;
    report_.compiled = request_.compiled_name.empty() ? request_.compiled : request_.compiled_name;
    report_.kind = request_.kind;
    report_.judge_effect = request_.judge_effect;
    report_.device = session_.description().device;
    report_.compute_type = session_.compute_type();
    for (const TensorInfo& input : session_.inputs())
        if (!input.picture.empty())
            return Error{ErrorCode::invalid_argument,
                         report_.compiled + ": input '" + input.name +
                             "' takes the bytes of a picture (--embed-preprocess), so that it is "
                             "not the input of the ONNX model; verify a model compiled without it"};
    auto found = OnnxRuntime::find();
    if (found)
        onnxruntime_ = std::move(*found);
    else
        why_no_onnxruntime_ = found.error().message;
    report_.reference =
        onnxruntime_ ? "ONNX Runtime " + onnxruntime_->version() : "the stored outputs";
    if (auto done = look_for_codes(); !done) return done;
    return open_decoder();
}

// ---- one frame through all stages

void Verification::record(Stage stage, const std::string& subject, const Judgement& j,
                          const std::string& sample) {
    for (Finding& f : report_.findings) {
        if (f.stage != stage || f.subject != subject) continue;
        f.of_range = std::max(f.of_range, j.of_range);
        if (j.is_empty) return;
        const bool is_first = std::exchange(f.is_empty, false);
        // What is not good is worse than what is, however far that is, and what differs than what
        // cannot be judged: the row tells of it.
        const auto badness = [](const auto& one) {
            return std::tuple(!one.is_good, !one.is_good && !one.is_undecided, one.excess);
        };
        if (!is_first && badness(j) <= badness(f)) return;
        f.excess = j.excess;
        f.text = j.text;
        f.sample = sample;
        f.is_good = j.is_good;
        f.is_undecided = j.is_undecided;
        return;
    }
    report_.findings.push_back({stage, subject, j.is_good, j.text, j.excess, j.of_range, sample,
                                j.is_empty, j.is_undecided});
}

std::vector<OnnxRuntime::Named> Verification::named_inputs(const Fed& fed) const {
    std::vector<OnnxRuntime::Named> inputs;
    for (size_t i = 0; i < fed.reference.size(); ++i)
        inputs.push_back({session_.inputs()[i].name, fed.reference[i]});
    return inputs;
}

Result<std::vector<TensorData>> Verification::expect(const Sample& sample, const Fed& fed) {
    std::vector<TensorData> expected;
    if (onnxruntime_) {
        auto outputs = onnxruntime_->run(request_.model, named_inputs(fed));
        if (!outputs && !sample.expected.empty()) {
            report_.reference = "the stored outputs";
            report_.notes.push_back(outputs.error().message);
            why_no_onnxruntime_ = outputs.error().message;
            onnxruntime_.reset();
            return expect(sample, fed);
        }
        if (!outputs) return Error{outputs.error().code, outputs.error().message + stored_instead};
        for (const TensorInfo& info : session_.outputs()) {
            const auto it = outputs->find(info.name);
            if (it == outputs->end())
                return Error{ErrorCode::invalid_argument,
                             request_.model + ": has no output '" + info.name + "' as " +
                                 report_.compiled + " has; it is compiled of another model"};
            expected.push_back(as_output(it->second, info));
        }
        return expected;
    }
    if (sample.expected.empty())
        return Error{ErrorCode::not_found, why_no_onnxruntime_ + stored_instead};
    if (sample.expected.size() != session_.outputs().size())
        return Error{ErrorCode::invalid_argument,
                     sample.name + ": has " + std::to_string(sample.expected.size()) +
                         " outputs, the model " + std::to_string(session_.outputs().size())};
    for (size_t i = 0; i < sample.expected.size(); ++i)
        expected.push_back(as_output(sample.expected[i], session_.outputs()[i]));
    return expected;
}

Result<std::vector<TensorData>> Verification::check_model(const Sample& sample,
                                                          const std::vector<Buffer>& out,
                                                          const std::vector<TensorData>& expected,
                                                          const Fed& fed) {
    std::vector<TensorData> values;
    for (size_t i = 0; i < out.size(); ++i) {
        auto own = reference_values(session_.output_view(i), session_.outputs()[i].cpu, out[i]);
        if (!own) return own.error();
        values.push_back(std::move(*own));
    }
    auto judgements = request_.tolerance ? judge_by_tolerance(values, expected, sample.name)
                                         : judge_by_rule(values, expected, fed);
    if (!judgements) return judgements.error();
    for (size_t i = 0; i < out.size(); ++i)
        record(Stage::model, output_name(i), (*judgements)[i], sample.name);
    if (judgements->size() > out.size())
        record(Stage::model, "what is found", judgements->back(), sample.name);
    return values;
}

// A tolerance that the user gives is kept to, whatever ONNX Runtime makes of the model elsewhere.
Result<std::vector<Judgement>> Verification::judge_by_tolerance(
    const std::vector<TensorData>& values, const std::vector<TensorData>& expected,
    const std::string& sample) const {
    std::vector<Judgement> judgements;
    for (size_t i = 0; i < values.size(); ++i) {
        const bool loose = was_quantised_ && is_float(session_.outputs()[i].cpu.data_type);
        const Tolerance tolerance = loose ? Session::tolerance_of_quantised(request_.tolerance)
                                          : session_.tolerance_of_output(i, request_.tolerance);
        auto judged =
            judge_output(values[i], expected[i], tolerance, sample + ": " + output_name(i));
        if (!judged) return judged.error();
        judgements.push_back(std::move(*judged));
    }
    return judgements;
}

// That of whole collections, so that both ways to ask give one answer: one per output, and one
// behind them where they are good and what the decoder finds is another thing.
Result<std::vector<Judgement>> Verification::judge_by_rule(const std::vector<TensorData>& values,
                                                           const std::vector<TensorData>& expected,
                                                           const Fed& fed) {
    std::vector<ExpectedOutput> all(expected.size());
    for (size_t i = 0; i < expected.size(); ++i) {
        all[i].plain = expected[i];
        all[i].step = session_.step(i);
    }
    std::optional<DecoderUse> use;
    if (decode_) {
        const PictureShape shape = picture_shape(session_.inputs()[*feeder_.picture()].cpu);
        use.emplace(DecoderUse{info_, session_.outputs(), shape.width, shape.height, fed.frame,
                               request_.decoder});
    }
    ModelAgreement agreement = judge_model(values, all, rule(), use ? &*use : nullptr);
    // Only now is it worth to look at how far the reference is from itself.
    if (onnxruntime_ && !(agreement.outputs_are_good() && agreement.objects.empty())) {
        if (auto done = add_references(all, fed); !done) return done.error();
        agreement = judge_model(values, all, rule(), use ? &*use : nullptr);
    }
    std::vector<Judgement> judgements;
    for (const OutputAgreement& a : agreement.outputs)
        judgements.push_back({.is_good = a.is_good,
                              .excess = a.excess,
                              .of_range = a.of_range,
                              .text = a.text,
                              .is_undecided = a.is_undecided});
    // Large numbers hide small ones: coordinates the scores of one tensor. Nor is it undecided
    // whether a model agrees that finds other things.
    const bool none_differs = std::ranges::all_of(
        agreement.outputs, [](const OutputAgreement& a) { return a.is_good || a.is_undecided; });
    if (none_differs && !agreement.objects.empty())
        judgements.push_back({false, HUGE_VAL, 0, agreement.objects});
    return judgements;
}

// What ONNX Runtime gives for the twin that rounds each tensor to bf16; nothing where there is
// none.
Result<std::optional<Verification::Outputs>> Verification::run_rounded(const Fed& fed) {
    const auto folder = artifact::ExtractionFolder::create({});  // private, gone afterwards
    if (!folder) return folder.error();
    const std::string twin = folder->path() + "/rounded.onnx";
    std::string why;
    if (const auto written = onnx::write_rounded(request_.model, twin); !written) {
        why = written.error().message;
    } else {
        auto outputs = onnxruntime_->run(twin, named_inputs(fed));
        if (outputs) return std::optional(std::move(*outputs));
        if (outputs.error().code != ErrorCode::device) return outputs.error();
        why = outputs.error().message;
    }
    if (why_no_rounded_.empty())
        report_.notes.push_back(
            "what an ideal bf16 device gives is not known, so the limits do not "
            "take it into account: " +
            why);
    why_no_rounded_ = why;
    return std::optional<Outputs>();
}

// What ONNX Runtime makes of the model at its other levels, of an input that differs by one in a
// million, and of the rounded twin.
Result<void> Verification::add_references(std::vector<ExpectedOutput>& all, const Fed& fed) {
    const auto take = [&](const Outputs& outputs, std::vector<TensorData> ExpectedOutput::* to) {
        for (size_t i = 0; i < all.size(); ++i)
            if (const auto it = outputs.find(session_.outputs()[i].name); it != outputs.end())
                (all[i].*to).push_back(as_output(it->second, session_.outputs()[i]));
    };
    for (const char* level : reference_levels) {
        if (level == reference_levels[0]) continue;
        const auto outputs = onnxruntime_->run(request_.model, named_inputs(fed), {}, level);
        if (!outputs && outputs.error().code != ErrorCode::device) return outputs.error();
        if (outputs) take(*outputs, &ExpectedOutput::levels);
    }
    std::vector<OnnxRuntime::Named> nudged = named_inputs(fed);
    bool is_other = false;
    for (NamedTensor& input : nudged) is_other = nudge(input.data) || is_other;
    if (is_other) {
        const auto outputs = onnxruntime_->run(request_.model, nudged);
        if (!outputs && outputs.error().code != ErrorCode::device) return outputs.error();
        if (outputs) take(*outputs, &ExpectedOutput::levels);
    }
    if (rule() == Rule::standard) {
        const auto outputs = run_rounded(fed);
        if (!outputs) return outputs.error();
        if (*outputs) take(**outputs, &ExpectedOutput::rounded);
    }
    return {};
}

Result<void> Verification::check_dequantise(const Sample& sample, const std::vector<Buffer>& out,
                                            const std::vector<TensorData>& values) {
    for (size_t i = 0; i < out.size(); ++i) {
        const TensorView &view = session_.output_view(i), &cpu = session_.outputs()[i].cpu;
        if (&view == &cpu) continue;
        auto found = stages_.dequantise(view, cpu, out[i]);
        if (!found) return found.error();
        const TensorData data{cpu.data_type, values[i].shape, std::move(*found)};
        record(Stage::dequantise, output_name(i), judge_dequantised(data, values[i]), sample.name);
    }
    return {};
}

std::vector<OutputTensor> Verification::tensors(const std::vector<Buffer>& out) const {
    std::vector<OutputTensor> list;
    for (size_t i = 0; i < out.size(); ++i)
        list.push_back({out[i].data(), session_.outputs()[i].name, &session_.output_view(i),
                        &session_.outputs()[i].cpu});
    return list;
}

Result<void> Verification::check_decode(const Sample& sample, const std::vector<Buffer>& out,
                                        const std::vector<TensorData>& values, const Frame& frame) {
    const auto list = tensors(out);
    auto found = stages_.decode(*decode_, list, frame);
    if (!found) return found.error();
    auto wanted = decode_->reference_candidates(values, frame);
    if (!wanted) return wanted.error();
    const std::string subject = "decoder " + std::string(decode_->family());
    record(Stage::decode, subject, judge_candidates(*found, *wanted, decode_->score_threshold()),
           sample.name);
    // NMS of the candidates that the decoder itself gives, whatever they are.
    auto own = decode_->candidates(list, frame);
    if (!own) return own.error();
    auto kept = stages_.suppress(*decode_, list, frame);
    if (!kept) return kept.error();
    record(Stage::suppress, subject, judge_selection(*kept, *own, *decode_, frame), sample.name);
    return {};
}

Result<void> Verification::check_effect(const Sample& sample, const Fed& fed,
                                        const std::vector<Buffer>& out,
                                        const std::vector<TensorData>& expected) {
    std::vector<Buffer> own = out;
    if (!fed.own.empty()) {
        std::vector<Buffer> inputs = fed.inputs;
        for (size_t i = 0; i < inputs.size(); ++i)
            if (!fed.own[i].empty()) inputs[i] = fed.own[i];
        auto ran = stages_.run(session_, inputs);
        if (!ran) return ran.error();
        own = std::move(*ran);
    }
    auto found = stages_.suppress(*decode_, tensors(own), fed.own_frame);
    if (!found) return found.error();
    auto candidates = decode_->reference_candidates(expected, fed.frame);
    if (!candidates) return candidates.error();
    if (!report_.effect) report_.effect.emplace().decoder = decode_->family();
    add_effect(*report_.effect, *found, decode_->reference_select(*candidates, fed.frame),
               decode_->score_threshold(), sample.name);
    const auto own_candidates = decode_->candidates(tensors(own), fed.own_frame);
    if (!own_candidates) return own_candidates.error();
    add_picture(report_.effect->picture, own_candidates->picture, candidates->picture);
    return {};
}

Result<void> Verification::look_inside(const Sample& sample, const Fed& fed) {
    if (!onnxruntime_) return Error{ErrorCode::not_found, "--layers: " + why_no_onnxruntime_};
    auto layers = compare_layers(request_.model, request_.compiled, options(), *onnxruntime_,
                                 fed.reference, request_.tolerance, was_quantised_);
    if (!layers) return layers.error();
    layers->sample = sample.name;
    if (!report_.layers || (layers->beyond != 0 && report_.layers->beyond == 0))
        report_.layers = std::move(*layers);
    return {};
}

Result<void> Verification::add(const Sample& sample) {
    auto fed = feeder_.feed(sample, stages_);
    if (!fed) return fed.error();
    if (fed->preprocess)
        record(Stage::preprocess, "input '" + session_.inputs()[*feeder_.picture()].name + "'",
               *fed->preprocess, sample.name);
    auto expected = expect(sample, *fed);
    if (!expected) return expected.error();
    auto out = stages_.run(session_, fed->inputs);
    if (!out) return out.error();
    auto values = check_model(sample, *out, *expected, *fed);
    if (!values) return values.error();
    if (auto done = check_dequantise(sample, *out, *values); !done) return done;
    // Boxes of a decoder that does not fit the reference's numbers are noise, and a note says so.
    const bool fits =
        decode_ && (!decode_->decode(cpu_tensors(session_.outputs(), *expected), fed->frame) ||
                    decode_->doubt().empty());
    if (fits) {
        if (auto done = check_decode(sample, *out, *values, fed->frame); !done) return done;
        if (auto done = check_effect(sample, *fed, *out, *expected); !done) return done;
    }
    if (request_.layers && (!report_.layers || report_.layers->beyond == 0))
        if (auto done = look_inside(sample, *fed); !done) return done;
    ++report_.samples;
    return {};
}

Result<Report> Verification::run() {
    if (auto done = prepare(); !done) return done.error();
    for (size_t i = 0; i < request_.num_samples; ++i) {
        auto sample = request_.sample(i);
        if (!sample) return sample.error();
        if (auto done = add(*sample); !done) return done.error();
    }
    std::ranges::stable_sort(report_.findings, {}, &Finding::stage);
    const bool fed_pictures = std::ranges::any_of(
        report_.findings, [](const Finding& f) { return f.stage == Stage::preprocess; });
    report_.notes.insert(
        report_.notes.begin(),
        fed_pictures ? feeder_.words() : "pre-process was not checked: give pictures to check it");
    for (const std::string& name : sizes_)
        if (fed_pictures)
            report_.notes.push_back("input '" + name +
                                    "' was fed the size of the picture, as its name says; a "
                                    "pipeline wants it in the sidecar: the lines dir=input and "
                                    "x-vartml-feed=frame-size in section [" +
                                    name + "]");
    for (const std::string& doubt :
         decode_ ? std::vector{decode_->doubt(), decode_->suspicion()} : std::vector<std::string>())
        if (!doubt.empty()) report_.notes.push_back(doubt);
    return std::move(report_);
}

}  // namespace

Result<Report> verify(const Request& request) {
    return verify(request, product_stages());
}

Result<Report> verify(const Request& request, const Stages& stages) {
    auto session =
        Session::open(request.compiled, {.numerics = request.numerics, .device = request.device});
    if (!session) return session.error();
    return Verification(request, stages, std::move(*session)).run();
}

}  // namespace vartml::verify
