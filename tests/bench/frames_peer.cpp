// SPDX-License-Identifier: Apache-2.0
// A 1920x1080 NV12 frame to a 640x640 letterbox on one thread: by our Preprocessor into bf16
// HCWNC4 (`ours`), or by the element videoconvertscale into RGB (`videoconvertscale`), which is
// given a ready frame again and again. Obeys lines on standard input:
//   run N      N frames; answers with the wall time of each in nanoseconds, on one line
// usage: frames_peer ours|videoconvertscale
#include <gst/check/gstharness.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <functional>
#include <iostream>
#include <string>
#include <vector>

#include <vartml/preprocess.h>

namespace {

using namespace vartml;

constexpr uint32_t width = 1920, height = 1080, side = 640;

std::vector<uint8_t> frame() {
    std::vector<uint8_t> pixels(size_t{width} * height * 3 / 2);
    for (size_t i = 0; i < pixels.size(); ++i) pixels[i] = static_cast<uint8_t>(i * 7 + i / 997);
    return pixels;
}

int obey(const std::function<void()>& convert) {
    using Clock = std::chrono::steady_clock;
    std::puts("ready");
    std::fflush(stdout);
    std::string word;
    long runs = 0;
    while (std::cin >> word >> runs) {
        std::string line;
        for (long r = 0; r < runs; ++r) {
            const auto start = Clock::now();
            convert();
            line += std::to_string(std::chrono::nanoseconds(Clock::now() - start).count()) + " ";
        }
        std::puts(line.c_str());
        std::fflush(stdout);
    }
    return 0;
}

int ours() {
    const TensorView cpu = make_view(DataType::float32, Layout::NCHW, {1, 3, side, side});
    const TensorView tensor = hw_view(cpu, Layout::HCWNC4, DataType::bf16);
    const PreprocessOptions options{.resize = ResizeMode::letterbox,
                                    .interpolation = Interpolation::bilinear,
                                    .mean = {123.675f, 116.28f, 103.53f},
                                    .scale = {0.0171f, 0.0175f, 0.0174f}};
    const auto pre = Preprocessor::create(
        {.format = PixelFormat::NV12, .width = width, .height = height}, {}, cpu, tensor, options);
    if (!pre) {
        std::fprintf(stderr, "frames_peer: %s\n", pre.error().message.c_str());
        return 1;
    }
    const std::vector<uint8_t> pixels = frame();
    const Picture picture{{pixels.data(), pixels.data() + size_t{width} * height, nullptr, nullptr},
                          {width, width, 0, 0}};
    std::vector<std::byte> out(tensor.size_bytes);
    return obey([&] { pre->run(picture, out.data()); });
}

int videoconvertscale() {
    gst_init(nullptr, nullptr);
    GstHarness* const h = gst_harness_new_parse("videoconvertscale n-threads=1");
    const std::string rate = ",framerate=30/1,pixel-aspect-ratio=1/1";
    gst_harness_set_src_caps_str(h,
                                 ("video/x-raw,format=NV12,width=1920,height=1080" + rate).c_str());
    gst_harness_set_sink_caps_str(h,
                                  ("video/x-raw,format=RGB,width=640,height=640" + rate).c_str());
    const std::vector<uint8_t> pixels = frame();
    GstBuffer* const buffer = gst_buffer_new_allocate(nullptr, pixels.size(), nullptr);
    gst_buffer_fill(buffer, 0, pixels.data(), pixels.size());
    gst_harness_play(h);
    const int status = obey([&] {
        gst_harness_push(h, gst_buffer_ref(buffer));
        gst_buffer_unref(gst_harness_pull(h));
    });
    gst_buffer_unref(buffer);
    gst_harness_teardown(h);
    return status;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 2) return 2;
    return std::strcmp(argv[1], "ours") == 0 ? ours() : videoconvertscale();
}
