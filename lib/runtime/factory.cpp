// SPDX-License-Identifier: Apache-2.0
// RunnerFactory: options first, then the model, then the rest.
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "lib/artifact/compiled_model.h"
#include "lib/common/file.h"
#include "lib/runtime/runner.h"
#include "lib/runtime/vart_errors.h"

namespace vartml::runtime {
namespace {

Error fault(ErrorCode code, const std::string& text) {
    return {code, "create_runner: " + text};
}

Error with_prefix(const Error& error) {
    return error.message.starts_with("create_runner: ") ? error : fault(error.code, error.message);
}

// What is understood, but not in this release, is refused and never ignored.
Result<void> check_release(const Options& options) {
    if (options.memory == "xrt")
        return fault(ErrorCode::unsupported,
                     "option 'vartml_memory' is 'xrt', and this build has no XRT; set it to "
                     "\"host\"");
    return {};
}

// Where a .tar.gz is unpacked: the folder of the options stays, that of the default name goes with
// the runner.
artifact::Extraction extraction(const Options& options, const std::string& model_path) {
    if (!options.cache_path.empty()) return {options.cache_path, true};
    std::string name(last_part(without_trailing_slashes(model_path)));
    name.resize(std::min(name.size(), name.find(".tar")));
    return {"vaiml_cache_" + artifact::file_stem(name) + '_' + std::to_string(::getpid()) + '_' +
                std::to_string(::gettid()),
            false};
}

}  // namespace
}  // namespace vartml::runtime

namespace vart {

std::shared_ptr<Runner> RunnerFactory::create_runner(
    RunnerType runner_type, const std::string& model_path,
    const std::unordered_map<std::string, std::any>& options) {
    using namespace vartml::runtime;
    if (runner_type != RunnerType::VAIML)
        throw_runtime(fault(vartml::ErrorCode::unsupported,
                            "runner type is " + std::to_string(static_cast<int>(runner_type)) +
                                ", expected RunnerType::VAIML"));
    return or_no_memory("create_runner", [&]() -> std::shared_ptr<Runner> {
        auto parsed = parse_options(options);
        if (!parsed) throw_invalid_argument(parsed.error());
        if (auto good = check_release(*parsed); !good) throw_runtime(good.error());
        auto model =
            vartml::artifact::read(model_path, {.extraction = extraction(*parsed, model_path)});
        if (!model) throw_runtime(with_prefix(model.error()));
        const bool no_failsafe = parsed->no_failsafe;
        auto state = prepare(model_path, std::move(*model), std::move(*parsed));
        if (!state) throw_runtime(state.error());
        if (no_failsafe)
            (*state)->logger(vartml::LogLevel::info, "option 'no_failsafe' has no effect here");
        return std::make_shared<VaimlRunner>(std::move(*state));
    });
}

}  // namespace vart
