// SPDX-License-Identifier: Apache-2.0
// Times layout conversions against memcpy of the same traffic. Prints one JSON object per line;
// single thread.
//   kernels_bench [PART-OF-NAME]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "lib/tensor/convert.h"

namespace {

using namespace vartml;
using Clock = std::chrono::steady_clock;

// Best time of one call in microseconds, over about 0.3 s.
double best_us(const std::function<void()>& work) {
    double best = 1e30;
    const auto end = Clock::now() + std::chrono::milliseconds(300);
    for (int i = 0; i < 5 || Clock::now() < end; ++i) {
        const auto start = Clock::now();
        work();
        best =
            std::min(best, std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    }
    return best;
}

struct Layouts {
    const char* name;
    TensorView cpu;
    Layout layout;
    DataType type;
};

void bench_layouts(const std::string& filter) {
    using enum DataType;
    const auto nchw = [](uint32_t c, uint32_t h, uint32_t w) {
        return make_view(float32, Layout::NCHW, {1, c, h, w});
    };
    const Layouts cases[] = {
        {"rgb640-hcwnc4-bf16", nchw(3, 640, 640), Layout::HCWNC4, bf16},
        {"rgb416-hcwnc4-bf16", nchw(3, 416, 416), Layout::HCWNC4, bf16},
        {"rgb224-hcwnc4-fp32", nchw(3, 224, 224), Layout::HCWNC4, float32},
        {"rgb224-hcwnc4-int8", nchw(3, 224, 224), Layout::HCWNC4, int8},
        {"head52-hcwnc8-bf16", nchw(85, 52, 52), Layout::HCWNC8, bf16},
        {"head52-hcwnc8-fp32", nchw(85, 52, 52), Layout::HCWNC8, float32},
        {"head52-hcwnc8-int8", nchw(85, 52, 52), Layout::HCWNC8, int8},
        {"map13-hcwnc16-bf16", nchw(512, 13, 13), Layout::HCWNC16, bf16},
        {"rows85-nhw-fp32", make_view(float32, Layout::NHW, {1, 8400, 85}), Layout::NHW, float32},
        {"rows85-nhw-bf16", make_view(float32, Layout::NHW, {1, 8400, 85}), Layout::NHW, bf16},
        {"nhwc224-hcwnc4-bf16", make_view(float32, Layout::NHWC, {1, 224, 224, 3}), Layout::HCWNC4,
         bf16},
        {"batch4-nhwc-bf16", make_view(float32, Layout::NCHW, {4, 3, 224, 224}), Layout::NHWC,
         bf16},
        {"map20-nhwc-fp32", make_view(float32, Layout::NCHW, {4, 85, 20, 20}), Layout::NHWC,
         float32},
    };
    for (const Layouts& c : cases) {
        const TensorView hw = hw_view(c.cpu, c.layout, c.type);
        std::vector<std::byte> a(c.cpu.size_bytes), b(hw.size_bytes);
        const size_t traffic = (a.size() + b.size()) / 2;
        std::vector<std::byte> from(traffic), to(traffic);
        const double copy = best_us([&] { std::memcpy(to.data(), from.data(), traffic); });
        for (const bool back : {false, true}) {
            const std::string name = std::string(c.name) + (back ? "-back" : "");
            if (name.find(filter) == std::string::npos) continue;
            const auto conversion =
                back ? Conversion::create(hw, c.cpu) : Conversion::create(c.cpu, hw);
            if (!conversion) {
                std::fprintf(stderr, "%s\n", conversion.error().message.c_str());
                std::exit(1);
            }
            const double ours = best_us([&] {
                if (back)
                    conversion->run(b.data(), a.data());
                else
                    conversion->run(a.data(), b.data());
            });
            std::printf(
                "{\"name\": \"layout/%s\", \"unit\": \"us\", \"ours\": %.1f, \"peer\": %.1f, "
                "\"ratio\": %.2f}\n",
                name.c_str(), ours, copy, ours / copy);
        }
    }
}

}  // namespace

int main(int argc, char** argv) {
    bench_layouts(argc > 1 ? argv[1] : "");
}
