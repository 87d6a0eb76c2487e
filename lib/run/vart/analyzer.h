// SPDX-License-Identifier: Apache-2.0
// The option ai_analyzer_profiling: captures each inference and writes files when the runner ends.
#pragma once
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <vartml/result.h>

#include "lib/model/compiled_model.h"
#include "lib/trace/capture.h"
#include "lib/trace/descriptor.h"

namespace vartml::runtime {

// Thread-safety: as CaptureSink; write() beside no other member.
class Analyzer final : public profiling::CaptureSink {
public:
    static constexpr size_t kept_captures = 32;

    // Makes the folder vartml_profile_<pid>_<n> in the folder named by VARTML_PROFILE_DIR, else in
    // the current one. Errors: io naming the folder; unsupported for a model without descriptor.
    static Result<std::shared_ptr<Analyzer>> create(const artifact::CompiledModel& model,
                                                    const std::string& model_path);

    ~Analyzer() override;

    const std::string& folder() const { return folder_; }
    unsigned level() const { return descriptor_.compiled_level; }

    unsigned level_of(uint64_t inference_index) noexcept override;
    void take(const profiling::Capture& capture) noexcept override;
    std::optional<profiling::ActivationNumbers> numbers() const noexcept override { return {}; }

    // Raw buffers of the last captures, their latency file, opstatsdesc.bin, and summary.csv over
    // all; a child process, `vartml opstats`, makes summaries and a trace of them. Errors: io, with
    // the command that makes them where the child could not.
    Result<void> write() const;

private:
    struct Sum {
        uint64_t count = 0, total_ns = 0, least_ns = ~uint64_t{0}, most_ns = 0;
        void add(uint64_t ns);
        std::string average() const;
    };

    Analyzer(profiling::Descriptor descriptor, std::string folder, std::string_view entry);
    Result<void> write_captures(std::span<const profiling::Capture* const> captures) const;
    Result<void> write_reports() const;
    std::vector<const profiling::Capture*> last() const;
    std::string summary_csv() const;

    const profiling::Descriptor descriptor_;
    const std::string descriptor_entry_;
    const std::string folder_;
    mutable std::mutex mutex_;  // guards what follows
    std::vector<profiling::Capture> ring_;
    uint64_t taken_ = 0;
    Sum round_trip_, npu_, provider_;
};

}  // namespace vartml::runtime
