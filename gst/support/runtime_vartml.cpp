// SPDX-License-Identifier: Apache-2.0
// libvartml-runtime: takes everything, and our reader describes the model without it.
#include "gst/support/runtime.h"

namespace vartml::gst {

std::optional<Failure> refuse_request(const std::string&, bool, const std::string&,
                                      const RunnerOptions&) {
    return std::nullopt;
}

vartml::Result<vartml::ModelDescription> describe_model(const std::string& path,
                                                        const RunnerOptions&) {
    return vartml::open_model(path);
}

const char* operators_not_reported() {
    return nullptr;
}

}  // namespace vartml::gst
