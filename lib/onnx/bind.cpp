// SPDX-License-Identifier: Apache-2.0
#include "lib/onnx/bind.h"

#include <set>

#include "lib/onnx/tensor.h"

namespace vartml::onnx {
namespace {

using Shape = pb::TensorShapeProto;
using Symbols = std::map<std::string, int64_t>;

// Exporters also write -1 for a dimension without a number.
bool is_symbolic(const Shape::Dimension& d) {
    return !d.has_dim_value() || d.dim_value() < 0;
}

std::string join(const std::vector<std::string>& words, const char* between) {
    std::string text;
    for (const std::string& word : words) text += (text.empty() ? "" : between) + word;
    return text;
}

Error option_error(const std::string& file, const std::string& input, const std::string& text) {
    return {ErrorCode::invalid_argument,
            file + ": --input-shape for input '" + input + "' " + text};
}

// The numbers that an option gives, entered under their symbols. They must agree with what the
// model fixes.
Result<void> take_option(const std::string& file, const pb::ValueInfoProto& input,
                         const std::vector<int64_t>& dims, Symbols& symbols) {
    for (const int64_t d : dims)
        if (d < 1)
            return option_error(file, input.name(),
                                "has the dimension " + std::to_string(d) + ", expected 1 or more");
    const auto& tensor = input.type().tensor_type();
    if (!tensor.has_shape()) return {};
    const Shape& shape = tensor.shape();
    if (static_cast<int>(dims.size()) != shape.dim_size())
        return option_error(file, input.name(),
                            "has " + std::to_string(dims.size()) + " dimensions, the model has " +
                                std::to_string(shape.dim_size()));
    for (int i = 0; i < shape.dim_size(); ++i) {
        const int64_t given = dims[static_cast<size_t>(i)];
        if (!is_symbolic(shape.dim(i))) {
            if (shape.dim(i).dim_value() != given)
                return option_error(file, input.name(),
                                    "has " + std::to_string(given) + " at axis " +
                                        std::to_string(i) + ", the model fixes " +
                                        std::to_string(shape.dim(i).dim_value()));
        } else if (const std::string& symbol = shape.dim(i).dim_param(); !symbol.empty()) {
            if (const auto [entry, added] = symbols.emplace(symbol, given);
                !added && entry->second != given)
                return option_error(file, input.name(),
                                    "gives dimension '" + symbol + "' the number " +
                                        std::to_string(given) + ", it is " +
                                        std::to_string(entry->second) + " already");
        }
    }
    return {};
}

// What to type: numbers where they are known, <name> where one is missing.
std::string shape_hint(const std::string& input, const Shape& shape, const Symbols& symbols) {
    std::vector<std::string> words;
    for (int i = 0; i < shape.dim_size(); ++i) {
        const auto& d = shape.dim(i);
        if (!is_symbolic(d)) {
            words.push_back(std::to_string(d.dim_value()));
        } else if (const auto bound = symbols.find(d.dim_param()); bound != symbols.end()) {
            words.push_back(std::to_string(bound->second));
        } else if (i == 0) {
            words.push_back("1");
        } else {
            words.push_back(
                '<' + (d.dim_param().empty() ? "D" + std::to_string(i) : d.dim_param()) + '>');
        }
    }
    return "--input-shape " + input + ':' + join(words, ",");
}

Result<std::vector<int64_t>> bind_shape(const std::string& file, const pb::ValueInfoProto& input,
                                        const Symbols& symbols) {
    const auto& tensor = input.type().tensor_type();
    if (!tensor.has_shape())
        return Error{ErrorCode::unsupported, file + ": input '" + input.name() +
                                                 "' has no shape; give --input-shape " +
                                                 input.name() + ":<D0>,<D1>,..."};
    std::vector<int64_t> dims;
    for (int i = 0; i < tensor.shape().dim_size(); ++i) {
        const auto& d = tensor.shape().dim(i);
        if (!is_symbolic(d)) {
            dims.push_back(d.dim_value());
        } else if (const auto bound = symbols.find(d.dim_param());
                   !d.dim_param().empty() && bound != symbols.end()) {
            dims.push_back(bound->second);
        } else if (i == 0) {
            dims.push_back(1);
        } else {
            const std::string named = d.dim_param().empty()
                                          ? "a symbolic dimension without a name"
                                          : "the symbolic dimension '" + d.dim_param() + "'";
            return Error{ErrorCode::unsupported,
                         file + ": input '" + input.name() + "' has " + named + " (axis " +
                             std::to_string(i) + "); give " +
                             shape_hint(input.name(), tensor.shape(), symbols) +
                             " to vartml compile"};
        }
    }
    return dims;
}

}  // namespace

Result<std::vector<BoundInput>> bind_inputs(
    const std::string& file, const pb::GraphProto& graph,
    const std::map<std::string, std::vector<int64_t>>& shapes, std::vector<Message>& messages) {
    std::set<std::string> initialisers;
    for (const auto& tensor : graph.initializer()) initialisers.insert(tensor.name());
    std::vector<const pb::ValueInfoProto*> inputs;
    std::vector<std::string> names;
    for (const auto& input : graph.input())
        if (!initialisers.contains(input.name())) {
            inputs.push_back(&input);
            names.push_back('\'' + input.name() + '\'');
        }
    for (const auto& [name, dims] : shapes) {
        (void)dims;
        bool found = false;
        for (const auto* input : inputs) found = found || input->name() == name;
        if (!found)
            return option_error(file, name, "names no input; the inputs are " + join(names, ", "));
    }

    Symbols symbols;
    for (const auto* input : inputs)
        if (const auto option = shapes.find(input->name()); option != shapes.end())
            if (auto done = take_option(file, *input, option->second, symbols); !done)
                return done.error();
    std::vector<std::string> batched;
    for (const auto* input : inputs) {
        if (shapes.contains(input->name()) || input->type().tensor_type().shape().dim_size() == 0)
            continue;
        const auto& first = input->type().tensor_type().shape().dim(0);
        if (!is_symbolic(first) ||
            (!first.dim_param().empty() && symbols.contains(first.dim_param())))
            continue;
        batched.push_back('\'' + input->name() + '\'');
    }
    for (const auto* input : inputs) {
        if (shapes.contains(input->name()) || input->type().tensor_type().shape().dim_size() == 0)
            continue;
        const auto& first = input->type().tensor_type().shape().dim(0);
        if (is_symbolic(first) && !first.dim_param().empty()) symbols.emplace(first.dim_param(), 1);
    }

    std::vector<BoundInput> bound;
    for (const auto* input : inputs) {
        if (!input->type().has_tensor_type())
            return Error{ErrorCode::unsupported, file + ": input '" + input->name() +
                                                     "' is no tensor (a sequence, map or optional "
                                                     "value); keep this part in the application"};
        const int32_t elem_type = input->type().tensor_type().elem_type();
        const auto option = shapes.find(input->name());
        auto dims =
            option != shapes.end() ? Result(option->second) : bind_shape(file, *input, symbols);
        if (!dims) return dims.error();
        bound.push_back({input->name(), {data_type(elem_type), std::move(*dims)}, elem_type});
    }
    if (!batched.empty())
        messages.push_back({LogLevel::info, file + ": the symbolic first axis of " +
                                                (batched.size() == 1 ? "input " : "inputs ") +
                                                join(batched, ", ") + " becomes 1"});
    return bound;
}

}  // namespace vartml::onnx
