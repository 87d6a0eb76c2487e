// SPDX-License-Identifier: Apache-2.0
// Times layout conversions against memcpy of the same traffic, pre-processing of frames, the
// tracker and a decoder. Prints one JSON object per line; single thread.
//   kernels_bench [PART-OF-NAME [INSTRUCTION-SET]]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <vartml/postprocess.h>
#include <vartml/preprocess.h>
#include <vartml/track.h>

#include "hwy/targets.h"
#include "lib/base/convert.h"

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

// Memory that begins at a page, as that of tensors does.
class Pages {
public:
    explicit Pages(size_t size)
        : bytes_(static_cast<std::byte*>(std::aligned_alloc(4096, round(size)))) {
        std::memset(data(), 0, round(size));
    }
    std::byte* data() const { return bytes_.get(); }

private:
    static size_t round(size_t size) { return (size + 4095) / 4096 * 4096; }
    struct Free {
        void operator()(std::byte* p) const { std::free(p); }
    };
    std::unique_ptr<std::byte[], Free> bytes_;
};

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
    // "example-": the layouts and types of the format's worked examples, at the sizes of models.
    const Layouts cases[] = {
        {"example-rgb224-hcwnc4-int8", nchw(3, 224, 224), Layout::HCWNC4, int8},
        {"example-rgb224-hcwnc4-bf16", nchw(3, 224, 224), Layout::HCWNC4, bf16},
        {"example-rgb640-hcwnc4-int8", nchw(3, 640, 640), Layout::HCWNC4, int8},
        {"example-head52-hcwnc8-int8", nchw(85, 52, 52), Layout::HCWNC8, int8},
        {"example-map40-hcwnc16-bf16", nchw(180, 40, 40), Layout::HCWNC16, bf16},
        {"example-rows85-nhw-int8", make_view(float32, Layout::NHW, {1, 8400, 85}), Layout::NHW,
         int8},
        {"example-rows8400-nhw-bf16", make_view(float32, Layout::NHW, {1, 84, 8400}), Layout::NHW,
         bf16},
        {"example-generic-int8", make_view(float32, Layout::GENERIC, {1, 100000}), Layout::GENERIC,
         int8},
        {"rgb640-hcwnc4-bf16", nchw(3, 640, 640), Layout::HCWNC4, bf16},
        {"rgb416-hcwnc4-bf16", nchw(3, 416, 416), Layout::HCWNC4, bf16},
        {"rgb224-hcwnc4-fp32", nchw(3, 224, 224), Layout::HCWNC4, float32},
        {"head52-hcwnc8-bf16", nchw(85, 52, 52), Layout::HCWNC8, bf16},
        {"head52-hcwnc8-fp32", nchw(85, 52, 52), Layout::HCWNC8, float32},
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
        if ((std::string(c.name) + "-back").find(filter) == std::string::npos) continue;
        const TensorView hw = hw_view(c.cpu, c.layout, c.type);
        const Pages a(c.cpu.size_bytes), b(hw.size_bytes);
        const size_t traffic = (c.cpu.size_bytes + hw.size_bytes) / 2;
        const Pages from(traffic), to(traffic);
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

struct Frames {
    const char* name;
    PixelFormat format;
    uint32_t width, height, model_width, model_height;
    ResizeMode resize;
    Layout layout;
    DataType type;
    Interpolation interpolation = Interpolation::bilinear;
};

void bench_frames(const std::string& filter) {
    using enum PixelFormat;
    using enum ResizeMode;
    constexpr DataType bf16 = DataType::bf16, int8 = DataType::int8, uint8 = DataType::uint8,
                       float32 = DataType::float32;
    const Frames cases[] = {
        {"nv12-1080-640-letterbox-bf16", NV12, 1920, 1080, 640, 640, letterbox, Layout::HCWNC4,
         bf16},
        {"i420-1080-640-letterbox-bf16", I420, 1920, 1080, 640, 640, letterbox, Layout::HCWNC4,
         bf16},
        {"rgb-1080-640-letterbox-bf16", RGB, 1920, 1080, 640, 640, letterbox, Layout::HCWNC4, bf16},
        {"bgrx-1080-640-letterbox-bf16", BGRx, 1920, 1080, 640, 640, letterbox, Layout::HCWNC4,
         bf16},
        {"nv12-1080-640-letterbox-int8", NV12, 1920, 1080, 640, 640, letterbox, Layout::HCWNC4,
         int8},
        {"nv12-1080-640-letterbox-u8nhwc", NV12, 1920, 1080, 640, 640, letterbox, Layout::NHWC,
         uint8},
        {"nv12-1080-640-letterbox-fp32nchw", NV12, 1920, 1080, 640, 640, letterbox, Layout::NCHW,
         float32},
        {"nv12-1080-640-letterbox-area", NV12, 1920, 1080, 640, 640, letterbox, Layout::HCWNC4,
         bf16, Interpolation::area},
        {"nv12-432-416-letterbox-bf16", NV12, 768, 432, 416, 416, letterbox, Layout::HCWNC4, bf16},
        {"i420-432-416-letterbox-bf16", I420, 768, 432, 416, 416, letterbox, Layout::HCWNC4, bf16},
        {"i420-432-416-stretch-bf16", I420, 768, 432, 416, 416, stretch, Layout::HCWNC4, bf16},
        {"nv12-2160-416-letterbox-bf16", NV12, 3840, 2160, 416, 416, letterbox, Layout::HCWNC4,
         bf16},
        {"rgb-640-640-plain-bf16", RGB, 640, 640, 640, 640, stretch, Layout::HCWNC4, bf16},
    };
    for (const Frames& c : cases) {
        if (std::string(c.name).find(filter) == std::string::npos) continue;
        const TensorView cpu =
            make_view(float32, Layout::NCHW, {1, 3, c.model_height, c.model_width});
        TensorView tensor = hw_view(cpu, c.layout, c.type);
        if (c.type == int8) tensor.quantisation = Quantisation{0.0078125, 0};
        const PreprocessOptions options{.resize = c.resize,
                                        .interpolation = c.interpolation,
                                        .mean = {123.675f, 116.28f, 103.53f},
                                        .scale = {0.0171f, 0.0175f, 0.0174f}};
        const auto pre = Preprocessor::create(
            {.format = c.format, .width = c.width, .height = c.height}, {}, cpu, tensor, options);
        if (!pre) {
            std::fprintf(stderr, "%s\n", pre.error().message.c_str());
            std::exit(1);
        }
        std::vector<uint8_t> pixels(size_t{c.width} * c.height * 4);
        for (size_t i = 0; i < pixels.size(); ++i)
            pixels[i] = static_cast<uint8_t>(i * 7 + i / 997);
        const uint32_t w = c.width, h = c.height;
        const uint32_t packed = num_planes(c.format) > 1 ? w : c.format == RGB ? 3 * w : 4 * w;
        const uint32_t chroma = c.format == I420 ? w / 2 : w;
        const Picture picture{
            {pixels.data(), pixels.data() + w * h, pixels.data() + w * h + w * h / 4, nullptr},
            {packed, chroma, chroma, 0}};
        std::vector<std::byte> out(tensor.size_bytes);
        const double us = best_us([&] { pre->run(picture, out.data()); });
        std::printf("{\"name\": \"pre/%s\", \"unit\": \"us\", \"ours\": %.1f}\n", c.name, us);
    }
}

// Boxes that walk in a frame of 1920x1080, with jitter; one in 20 is missed, one in 10 uncertain.
void bench_track(const std::string& filter) {
    constexpr int objects = 100, frames = 900;
    constexpr const char* name = "track/objects_100";
    if (std::string(name).find(filter) == std::string::npos) return;
    std::mt19937 random(1);
    const auto number = [&](float from, float to) {
        return from + (to - from) * static_cast<float>(random() % 10000) / 10000;
    };
    struct Walker {
        float x, y, vx, vy;
    };
    std::vector<Walker> walkers(objects);
    for (Walker& w : walkers) w = {number(0, 1860), number(0, 960), number(-3, 3), number(-3, 3)};
    Tracker tracker({});
    std::vector<Detection> detections;
    std::vector<Identity> identities;
    std::vector<double> times;
    for (uint64_t frame = 0; frame < frames; ++frame) {
        detections.clear();
        for (Walker& w : walkers) {
            w.x += w.vx, w.y += w.vy;
            if (w.x < 0 || w.x > 1860) w.vx = -w.vx;
            if (w.y < 0 || w.y > 960) w.vy = -w.vy;
            if (random() % 20 == 0) continue;
            const float x = w.x + number(-2, 2), y = w.y + number(-2, 2);
            detections.push_back({x, y, x + 60, y + 120, random() % 10 ? 0.9f : 0.3f, 0});
        }
        const auto start = Clock::now();
        tracker.update(frame * 33'333'333, detections, identities);
        times.push_back(std::chrono::duration<double, std::micro>(Clock::now() - start).count());
    }
    std::ranges::sort(times);
    std::printf("{\"name\": \"%s\", \"unit\": \"us\", \"ours\": %.1f, \"p99\": %.1f}\n", name,
                times[times.size() / 2], times[times.size() * 99 / 100]);
}

// A head of 80 classes for 640x640: 100 positions have a likely class, in clusters, so that NMS has
// work; the rest is noise below the threshold.
void bench_decode(const std::string& filter) {
    constexpr uint32_t positions = 8400, classes = 80, attributes = 4 + classes;
    struct Form {
        const char* name;
        bool transposed;
        DataType type;
    };
    for (const Form& form : {Form{"decode/yolo_8400x84", false, DataType::float32},
                             {"decode/yolo_8400x84-transposed", true, DataType::float32},
                             {"decode/yolo_8400x84-bf16", false, DataType::bf16},
                             {"decode/yolo_8400x84-int8", false, DataType::int8}}) {
        if (std::string(form.name).find(filter) == std::string::npos) continue;
        std::mt19937 random(1);
        const auto number = [&](float from, float to) {
            return from + (to - from) * static_cast<float>(random() % 10000) / 10000;
        };
        const auto shape = form.transposed ? std::vector<uint32_t>{1, positions, attributes}
                                           : std::vector<uint32_t>{1, attributes, positions};
        TensorInfo info;
        info.name = "output0";
        info.cpu = make_view(DataType::float32, Layout::NHW, shape);
        std::vector<float> values(size_t{positions} * attributes);
        const bool bytes = form.type == DataType::int8;  // coordinates and scores share a scale
        for (uint32_t p = 0; p < positions; ++p) {
            const bool likely = p % 84 == 0;
            const float cluster = static_cast<float>(p / 84 % 10);
            for (uint32_t a = 0; a < attributes; ++a) {
                float v = a < 2   ? 60 + cluster * 50 + number(-12, 12)
                          : a < 4 ? number(40, 80)
                                  : number(0, 0.15f);
                if (likely && a == 4 + p / 84 % 5) v = number(0.3f, 0.95f);
                values[form.transposed ? size_t{p} * attributes + a : size_t{a} * positions + p] =
                    bytes && a < 4 ? v / 640 : v;
            }
        }
        std::vector<std::byte> stored(info.cpu.size_bytes);
        std::memcpy(stored.data(), values.data(), stored.size());
        if (form.type != DataType::float32) {
            info.hw = hw_view(info.cpu, Layout::NHW, form.type);
            if (bytes) info.hw->quantisation = Quantisation{1 / 127.0, 0};
            const auto to_hw = Conversion::create(info.cpu, *info.hw);
            std::vector<std::byte> hw(info.hw->size_bytes);
            to_hw->run(stored.data(), hw.data());
            stored = std::move(hw);
        }
        auto decoder = Decoder::create({}, {&info, 1}, 640, 640, {.decoder = "yolo-v8"});
        if (!decoder) {
            std::fprintf(stderr, "%s\n", decoder.error().message.c_str());
            std::exit(1);
        }
        const OutputTensor output{stored.data(), info.name, info.hw ? &*info.hw : &info.cpu,
                                  &info.cpu};
        Decoded decoded;
        const double us = best_us([&] {
            if (!decoder->decode({&output, 1}, {}, 640, 640, decoded)) std::exit(1);
        });
        std::printf(
            "{\"name\": \"%s\", \"unit\": \"us\", \"ours\": %.1f, \"boxes\": %zu, "
            "\"suppressed\": %u}\n",
            form.name, us, decoded.detections.size(), decoded.suppressed);
    }
}

// The class of each cell of 19 maps of 256x512, as of a street; `convert` is what it takes to make
// dense floats of an NPU's view.
void bench_segment(const std::string& filter) {
    constexpr uint32_t classes = 19, height = 256, width = 512;
    struct Form {
        const char* name;
        Layout layout;  // of the CPU view
        DataType type;
    };
    for (const Form& form : {Form{"decode/segment_19x256x512", Layout::NCHW, DataType::float32},
                             {"decode/segment_19x256x512-nhwc", Layout::NHWC, DataType::float32},
                             {"decode/segment_19x256x512-bf16", Layout::NCHW, DataType::bf16},
                             {"decode/segment_19x256x512-int8", Layout::NCHW, DataType::int8}}) {
        if (std::string(form.name).find(filter) == std::string::npos) continue;
        TensorInfo info;
        info.name = "out";
        info.cpu = form.layout == Layout::NCHW
                       ? make_view(DataType::float32, Layout::NCHW, {1, classes, height, width})
                       : make_view(DataType::float32, Layout::NHWC, {1, height, width, classes});
        std::vector<float> values(size_t{classes} * height * width);
        std::mt19937 random(1);
        for (float& v : values) v = static_cast<float>(random() % 256) / 64 - 2;
        std::vector<std::byte> stored(info.cpu.size_bytes);
        std::memcpy(stored.data(), values.data(), stored.size());
        double convert_us = 0;
        if (form.type != DataType::float32) {
            info.hw = hw_view(info.cpu, Layout::HCWNC8, form.type);
            if (form.type == DataType::int8) info.hw->quantisation = Quantisation{1 / 64.0, 0};
            std::vector<std::byte> hw(info.hw->size_bytes);
            Conversion::create(info.cpu, *info.hw)->run(stored.data(), hw.data());
            const auto back = Conversion::create(*info.hw, info.cpu);
            convert_us = best_us([&] { back->run(hw.data(), stored.data()); });
            stored = std::move(hw);
        }
        auto decoder = Decoder::create({}, {&info, 1}, width, height, {.decoder = "segment"});
        if (!decoder) {
            std::fprintf(stderr, "%s\n", decoder.error().message.c_str());
            std::exit(1);
        }
        const OutputTensor output{stored.data(), info.name, info.hw ? &*info.hw : &info.cpu,
                                  &info.cpu};
        Decoded decoded;
        const double us = best_us([&] {
            if (!decoder->decode({&output, 1}, {}, width, height, decoded)) std::exit(1);
        });
        std::printf("{\"name\": \"%s\", \"unit\": \"us\", \"ours\": %.1f, \"convert\": %.1f}\n",
                    form.name, us, convert_us);
    }
}

}  // namespace

int main(int argc, char** argv) {
    const std::string filter = argc > 1 ? argv[1] : "";
    if (argc > 2) {
        for (const int64_t target : hwy::SupportedAndGeneratedTargets())
            if (std::strcmp(hwy::TargetName(target), argv[2]) == 0)
                hwy::SetSupportedTargetsForTest(target);
        hwy::GetChosenTarget().Update(hwy::SupportedTargets());
    }
    bench_layouts(filter);
    bench_frames(filter);
    bench_track(filter);
    bench_decode(filter);
    bench_segment(filter);
}
