// SPDX-License-Identifier: Apache-2.0
// What a picture looks like, as a vector: [1,D] or [1,D,1,1], given as a vector of length 1.
#include <algorithm>
#include <cmath>

#include "lib/vision/families.h"
#include "lib/vision/maps.h"
#include "lib/vision/plausibility.h"

namespace vartml::vision {

namespace {

class Embedding final : public Head {
public:
    Embedding(size_t output, size_t numbers) : output_(output), numbers_(numbers) {}

    unsigned classes() const override { return 0; }

    Result<void> run(std::span<const OutputTensor> tensors, const RunContext&,
                     Candidates& out) override {
        auto read = view_.read(tensors[output_]);
        if (!read) return std::move(read).error();
        const std::span values(*read, numbers_);
        probabilities_ = are_probabilities(values);
        double squares = 0;
        for (const float value : values) {
            out.not_finite += !std::isfinite(value);
            squares += double(value) * value;
        }
        if (!std::isfinite(squares) || squares == 0) return {};  // has no direction
        const double scale = 1 / std::sqrt(squares);
        for (const float value : values) {
            out.picture.embedding.push_back(static_cast<float>(value * scale));
        }
        return {};
    }

    std::string doubt() const override {
        if (!probabilities_) return {};
        return "its " + std::to_string(numbers_) +
               " numbers are between 0 and 1 and sum up to 1, as scores of classes do";
    }

private:
    size_t output_, numbers_;
    bool probabilities_ = false;  // the last numbers
    FloatView view_;
};

bool is_vector(const TensorInfo& output) {
    return is_class_vector(output.cpu.shape) && output.cpu.shape[1] > 1;
}

const TensorInfo* find_vector(const HeadRequest& request) {
    constexpr std::string_view hints[] = {"embed", "feature"};
    return find_output(request, "embedding", hints, is_vector);
}

}  // namespace

// A vector alone is a classification; the graph's last operator may show that it is none, or leave
// it open: sums of products, or what a Relu leaves of them, that nobody calls classes.
bool fits_embedding(const HeadRequest& request) {
    const TensorInfo* vector = find_vector(request);
    if (!vector || output_with_role(request, "embedding")) return vector != nullptr;
    const bool unit = request.outputs.size() == 1 && ends_in(request, *vector) == "unit-length";
    return (unit && !are_classes(request, *vector)) || may_be_other_than_classes(request, *vector);
}

Result<std::unique_ptr<Head>> create_embedding(const HeadRequest& request) {
    const TensorInfo* output = find_vector(request);
    if (!output) return role_error(request, "embedding", "[1,D]");
    return std::unique_ptr<Head>(std::make_unique<Embedding>(
        static_cast<size_t>(output - request.outputs.data()), output->cpu.shape[1]));
}

}  // namespace vartml::vision
