// SPDX-License-Identifier: Apache-2.0
// The software NPU as a device.
#include "lib/device/softnpu/softnpu.h"
#include "lib/common/processors.h"

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>

#include "lib/device/softnpu/executable.h"
#include "lib/device/softnpu/lowering.h"
#include "lib/device/softnpu/onednn.h"
#include "lib/device/softnpu/processor.h"
#include "lib/device/softnpu/weight_cache.h"

namespace vartml::device {
namespace {

// bf16 only where the processor multiplies it natively.
DataType compute_type(Numerics numerics) {
    if (numerics == Numerics::bf16) return DataType::bf16;
    if (numerics == Numerics::f32) return DataType::float32;
    return softnpu::has_bf16_products() ? DataType::bf16 : DataType::float32;
}

class SoftNpu final : public Device {
public:
    std::string name() const override { return "softnpu"; }
    // CPU partitions differ in nothing but the type of their float work.
    bool supports_target(const std::string& t) const override {
        return t == "softnpu-1" || t == "cpu-1";
    }
    unsigned num_cores() const override { return std::min(usable_processors(), 64U); }

    Result<std::unique_ptr<Executable>> load(std::shared_ptr<const Program> program,
                                             const LoadOptions& options) override {
        const unsigned all = options.threads ? options.threads : num_cores();
        const unsigned runs = std::clamp(options.concurrent_runs, 1U, std::min(all, num_cores()));
        const softnpu::OneThread one;
        const DataType compute =
            program->target == "cpu-1" ? DataType::float32 : compute_type(options.numerics);
        try {
            std::optional<softnpu::WeightCache> cache;
            const auto open = [&](bool uses_onednn) -> const softnpu::WeightCache* {
                if (options.weights_cache_dir.empty()) return nullptr;
                const auto key = softnpu::WeightCache::key(*program, compute, all, uses_onednn);
                if (!key) return nullptr;
                return &cache.emplace(options.weights_cache_dir, *key, options.note);
            };
            auto plan = softnpu::Lowering(*program, compute, all).run(open);
            if (!plan) return std::move(plan).error();
            // More frames than threads would only push each other out of the caches.
            auto loaded = softnpu::SoftExecutable::create(program, std::move(*plan), compute, runs,
                                                          std::clamp(options.batch, 1U, all), all);
            if (!loaded) return std::move(loaded).error();
            return std::unique_ptr<Executable>(std::move(*loaded));
        } catch (const std::bad_alloc&) {
            return Error{ErrorCode::out_of_memory, "no memory to load the program"};
        } catch (const dnnl::error& e) {
            return Error{ErrorCode::device, std::string("oneDNN: ") + e.what()};
        }
    }
};

}  // namespace

Device& softnpu_device() {
    static SoftNpu device;
    return device;
}

}  // namespace vartml::device
