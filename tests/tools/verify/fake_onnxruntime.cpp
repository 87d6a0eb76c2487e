// SPDX-License-Identifier: Apache-2.0
// A library that says it is ONNX Runtime 9.9.9, and is nothing else.
#include <onnxruntime/onnxruntime_c_api.h>

namespace {

const OrtApi* api(uint32_t) noexcept {
    static const OrtApi none{};
    return &none;
}
const char* version() noexcept {
    return "9.9.9";
}
const OrtApiBase base{api, version};

}  // namespace

extern "C" __attribute__((visibility("default"))) const OrtApiBase* fake_base() asm(
    "OrtGetApiBase");
extern "C" const OrtApiBase* fake_base() {
    return &base;
}
