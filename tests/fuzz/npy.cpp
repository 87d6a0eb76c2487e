// SPDX-License-Identifier: Apache-2.0
// Reads any bytes as NumPy's array. What was read is written and read again, and is the same then.
#include "lib/tools/tensor_file.h"

#include "tests/fuzz/bytes.h"

using namespace vartml;
using namespace vartml::test;

extern "C" int LLVMFuzzerInitialize(int*, char***) {
    const auto tensor = [](DataType type, std::vector<int64_t> shape, size_t bytes) {
        tools::TensorData data;
        data.type = type;
        data.shape = std::move(shape);
        data.bytes.resize(bytes);
        return tools::npy_of(data);
    };
    seed("f32", tensor(DataType::float32, {2, 3}, 24));
    seed("i64", tensor(DataType::int64, {2}, 16));
    seed("scalar", tensor(DataType::uint8, {}, 1));
    return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
    const auto read = tools::parse_npy(std::string(as_text(data, size)), "array");
    check_refusal(read);
    if (!read) return 0;
    const std::string text = tools::npy_of(*read);
    const auto again = tools::parse_npy(text, "array");
    check(again && again->shape == read->shape && again->bytes == read->bytes);
    return 0;
}
