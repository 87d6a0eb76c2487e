// SPDX-License-Identifier: Apache-2.0
// Numbers of labels in their models.
#pragma once
#include <gst/gst.h>

#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "gst/support/inference.h"

namespace vartml::gst {

// Labels are looked up once per model. Thread-safety: none.
class LabelNumbers {
public:
    // The number of the class in the model's list; of a model without list the number that the
    // label is.
    std::optional<int32_t> find(const std::shared_ptr<const InferenceRecord>& model, GQuark label);
    void clear() { models_.clear(); }

private:
    struct Model {
        std::shared_ptr<const InferenceRecord> record;
        std::unordered_map<GQuark, int32_t> numbers;
    };
    std::vector<Model> models_;
};

}  // namespace vartml::gst
