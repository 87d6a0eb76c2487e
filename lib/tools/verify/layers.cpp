// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/verify/layers.h"

#include <algorithm>
#include <map>
#include <utility>

#include "lib/compile/connect.h"
#include "lib/model/entries.h"
#include "lib/tools/verify/judge.h"
#include "lib/tools/verify/reference_tensor.h"

namespace vartml::verify {
namespace {

// Codes around their mean, so that the zero point does not hide a difference.
TensorData centred(const TensorData& data, double mean) {
    std::vector<double> numbers = numbers_of(data);
    for (double& n : numbers) n -= mean;
    const std::vector<uint32_t> shape(data.shape.begin(), data.shape.end());
    return tensor_of(DataType::float32, shape, numbers);
}

double mean_of(const TensorData& data) {
    const std::vector<double> numbers = numbers_of(data);
    double sum = 0;
    for (const double n : numbers) sum += n;
    return numbers.empty() ? 0 : sum / static_cast<double>(numbers.size());
}

class Comparer {
public:
    Comparer(Session session, const compiler::ModelWithTensors& kept,
             std::optional<double> tolerance, bool was_quantised)
        : session_(std::move(session)),
          kept_(kept),
          tolerance_(tolerance),
          on_codes_(compiler::computes_on_codes(kept.model)),
          was_quantised_(was_quantised) {}

    Session& session() { return session_; }

    Result<Layers> compare(const std::vector<Buffer>& found,
                           const std::map<std::string, TensorData>& expected, size_t own_outputs) {
        std::map<std::string, size_t> index;
        for (size_t i = 0; i < session_.outputs().size(); ++i)
            index[session_.outputs()[i].name] = i;
        Layers layers;
        layers.in_onnx = kept_.in_onnx;
        layers.ends_agree = true;
        for (const compiler::KeptTensor& tensor : kept_.tensors) {
            const auto at = index.find(tensor.name);
            const auto want = expected.find(tensor.name);
            if (at == index.end() || want == expected.end()) continue;
            const auto judged =
                judge(at->second, found[at->second], want->second, at->second < own_outputs);
            if (!judged) continue;  // of another type or shape: a pass made it another tensor
            const LayerFinding finding{tensor.name,  tensor.node,    tensor.kind,    tensor.sources,
                                       judged->text, judged->excess, judged->is_good};
            ++layers.compared;
            layers.beyond += finding.is_good ? 0 : 1;
            if (!finding.is_good && !layers.first) layers.first = finding;
            if (!layers.worst || finding.excess > layers.worst->excess) layers.worst = finding;
            if (at->second < own_outputs && !finding.is_good) layers.ends_agree = false;
        }
        return layers;
    }

private:
    std::optional<Judgement> judge(size_t output, const Buffer& bytes, const TensorData& want,
                                   bool at_border) {
        const TensorInfo& info = session_.outputs()[output];
        auto found = reference_values(session_.output_view(output), info.cpu, bytes);
        if (!found || found->type != want.type || found->bytes.size() != want.bytes.size())
            return std::nullopt;
        const bool codes = want.type == DataType::int8 || want.type == DataType::uint8;
        const bool number = codes || is_float(want.type);
        // Inside a model of codes roundings add up from layer to layer, which no count of steps
        // bounds; a wrong layer turns the whole tensor.
        const bool loose = number && on_codes_ && (!at_border || was_quantised_);
        Tolerance tolerance = loose ? Session::tolerance_of_quantised(tolerance_)
                                    : session_.tolerance_of_output(output, tolerance_);
        if (tolerance.measure == Measure::range && !at_border)
            tolerance.measure = Measure::magnitude;
        const bool centre = loose && codes;
        const double mean = centre ? mean_of(want) : 0;
        const auto judged = judge_output(centre ? centred(*found, mean) : *found,
                                         centre ? centred(want, mean) : want, tolerance, info.name);
        if (!judged) return std::nullopt;
        return *judged;
    }

    Session session_;
    const compiler::ModelWithTensors& kept_;
    std::optional<double> tolerance_;
    bool on_codes_, was_quantised_;
};

}  // namespace

Result<Layers> compare_layers(const std::string& onnx_file, const std::string& compiled,
                              const Session::Options& options, const OnnxRuntime& reference,
                              const std::vector<TensorData>& inputs,
                              std::optional<double> tolerance, bool was_quantised) {
    auto model = artifact::read(compiled);
    if (!model) return model.error();
    const size_t own_outputs = model->outputs.size();
    const auto kept = compiler::keep_tensors(std::move(*model), onnx_file);
    if (!kept) return kept.error();
    const auto folder = artifact::ExtractionFolder::create({});  // private, gone afterwards
    if (!folder) return folder.error();
    const std::string path = folder->path() + "/layers.rai";
    if (auto written = artifact::write_rai(kept->model, path); !written) return written.error();
    Session::Options on_cpu = options;
    on_cpu.cpu_views = true;
    auto session = Session::open(path, on_cpu);
    if (!session) return session.error();
    std::vector<Buffer> bytes;
    std::vector<OnnxRuntime::Named> named;
    for (size_t i = 0; i < inputs.size(); ++i) {
        bytes.push_back(inputs[i].bytes);
        named.push_back({session->inputs()[i].name, inputs[i]});
    }
    std::vector<std::string> names;
    for (size_t i = own_outputs; i < session->outputs().size(); ++i)
        names.push_back(session->outputs()[i].name);
    auto expected = reference.run(onnx_file, named, names);
    if (!expected) return expected.error();
    auto found = session->run(bytes);
    if (!found) return found.error();
    return Comparer(std::move(*session), *kept, tolerance, was_quantised)
        .compare(*found, *expected, own_outputs);
}

}  // namespace vartml::verify
