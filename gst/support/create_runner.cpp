// SPDX-License-Identifier: Apache-2.0
// Alone in its file, so that a test can link a runner of its own in its place.
#include "gst/support/guarded.h"
#include "gst/support/vart_runner.h"

namespace vartml::gst {

vartml::Result<std::shared_ptr<vart::Runner>> create_runner(const std::string& model_path,
                                                            const RunnerOptions& options) {
    return guarded([&] {
        return vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, model_path, options);
    });
}

}  // namespace vartml::gst
