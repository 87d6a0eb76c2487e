// SPDX-License-Identifier: Apache-2.0
// The software NPU as a device.
#include "lib/device/softnpu/softnpu.h"

#include <omp.h>
#include <sched.h>

#include <oneapi/dnnl/dnnl.hpp>

#include "lib/device/softnpu/executable.h"
#include "lib/device/softnpu/lowering.h"

namespace vartml::device {
namespace {

int usable_processors() {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

// bf16 only where the processor multiplies it natively.
DataType compute_type(Numerics numerics) {
    if (numerics == Numerics::bf16) return DataType::bf16;
    if (numerics == Numerics::f32) return DataType::float32;
    const dnnl::cpu_isa isa = dnnl::get_effective_cpu_isa();
    const bool native =
        isa == dnnl::cpu_isa::avx512_core_bf16 || isa == dnnl::cpu_isa::avx512_core_fp16 ||
        isa == dnnl::cpu_isa::avx512_core_amx || isa == dnnl::cpu_isa::avx512_core_amx_fp16 ||
        isa == dnnl::cpu_isa::avx10_1_512 || isa == dnnl::cpu_isa::avx10_1_512_amx ||
        isa == dnnl::cpu_isa::avx10_1_512_amx_fp16;
    return native ? DataType::bf16 : DataType::float32;
}

class SoftNpu final : public Device {
public:
    std::string name() const override { return "softnpu"; }
    bool supports_target(const std::string& t) const override { return t == "softnpu-1"; }

    Result<std::unique_ptr<Executable>> load(std::shared_ptr<const Program> program,
                                             const LoadOptions& options) override {
        const int threads =
            options.threads ? static_cast<int>(options.threads) : usable_processors();
        omp_set_num_threads(threads);  // primitives are made for the team that will run them
        const DataType compute = compute_type(options.numerics);
        try {
            auto plan = softnpu::Lowering(*program, compute).run();
            if (!plan) return std::move(plan).error();
            auto executable = softnpu::SoftExecutable::create(std::move(program), std::move(*plan),
                                                              compute, threads);
            if (!executable) return std::move(executable).error();
            return std::unique_ptr<Executable>(std::move(*executable));
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
