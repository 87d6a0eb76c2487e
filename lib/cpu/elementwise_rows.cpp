// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "lib/cpu/broadcast.h"
#include "lib/cpu/elementwise.h"

namespace vartml::cpu {

namespace {

// Elements that a row gets at once: their buffers stay in the nearest cache.
constexpr int64_t chunk = 512;
struct alignas(8) Buffer {
    std::byte bytes[chunk * 8];
};

bool is_half(DataType type) {
    return type == DataType::bf16 || type == DataType::fp16;
}
DataType type_in_row(DataType type) {
    return is_half(type) ? DataType::float32 : type;
}
int64_t row_size(DataType type) {
    return static_cast<int64_t>(size_bytes(type_in_row(type)));
}

void widen(DataType type, const std::byte* from, float* to, int64_t n) {
    const auto loop = [&](auto* half) {
        for (int64_t i = 0; i < n; ++i) to[i] = static_cast<float>(half[i]);
    };
    if (type == DataType::bf16)
        loop(reinterpret_cast<const Bf16*>(from));
    else
        loop(reinterpret_cast<const _Float16*>(from));
}
void narrow(DataType type, const float* from, std::byte* to, int64_t n) {
    const auto loop = [&]<typename T>(T* half) {
        for (int64_t i = 0; i < n; ++i) half[i] = static_cast<T>(from[i]);
    };
    if (type == DataType::bf16)
        loop(reinterpret_cast<Bf16*>(to));
    else
        loop(reinterpret_cast<_Float16*>(to));
}

// n copies of the first element, by doubling.
void repeat(std::byte* bytes, size_t size, int64_t n) {
    const size_t all = size * static_cast<size_t>(n);
    for (size_t done = size; done < all; done += std::min(done, all - done))
        std::memcpy(bytes + done, bytes, std::min(done, all - done));
}

// One input as rows want it: n elements at `offset`, or one of them n times, of the type in rows.
class Operand {
public:
    Operand(const Array& array, bool advances) : array_(array), advances_(advances) {}
    // The elements of a run, the first chunk of which has n.
    void begin(int64_t offset, int64_t n) {
        data_ = array_.data + offset * static_cast<int64_t>(size_bytes(array_.type));
        if (advances_) return;
        const auto size = static_cast<size_t>(row_size(array_.type));
        if (is_half(array_.type))
            widen(array_.type, data_, reinterpret_cast<float*>(buffer_.bytes), 1);
        else
            std::memcpy(buffer_.bytes, data_, size);
        repeat(buffer_.bytes, size, n);
    }
    const std::byte* next(int64_t n) {
        if (!advances_) return buffer_.bytes;
        const std::byte* data = data_;
        data_ += n * static_cast<int64_t>(size_bytes(array_.type));
        if (!is_half(array_.type)) return data;
        widen(array_.type, data, reinterpret_cast<float*>(buffer_.bytes), n);
        return buffer_.bytes;
    }

private:
    const Array& array_;
    const bool advances_;
    const std::byte* data_ = nullptr;
    Buffer buffer_;
};

// f(at, n, x) for each chunk: n elements of every operand in x, to become those at `at`.
template <size_t N, typename F>
void for_each_chunk(const Runs<N>& runs, std::array<Operand, N>& operands, F&& f) {
    runs.for_each([&](int64_t start, const std::array<int64_t, N>& offsets) {
        for (size_t i = 0; i < N; ++i)
            operands[i].begin(offsets[i], std::min(chunk, runs.length()));
        for (int64_t done = 0; done < runs.length(); done += chunk) {
            const int64_t n = std::min(chunk, runs.length() - done);
            std::array<const std::byte*, N> x;
            for (size_t i = 0; i < N; ++i) x[i] = operands[i].next(n);
            f(start + done, n, x);
        }
    });
}

template <size_t N>
void run_row_over(const Runs<N>& runs, std::array<Operand, N>& operands, Row row, const Array& y,
                  const Parameters& p) {
    const auto size = static_cast<int64_t>(size_bytes(y.type));
    Buffer wide;
    for_each_chunk(runs, operands, [&](int64_t at, int64_t n, const auto& x) {
        std::byte* to = y.data + at * size;
        row(x.data(), is_half(y.type) ? wide.bytes : to, n, p);
        if (is_half(y.type)) narrow(y.type, reinterpret_cast<float*>(wide.bytes), to, n);
    });
}

}  // namespace

void run_row(Row row, std::span<const Array> inputs, const Array& y, const Parameters& p) {
    if (inputs.size() == 1) {
        const Runs<1> runs(y.shape, {inputs[0].shape});
        std::array operands = {Operand(inputs[0], runs.step(0) != 0)};
        run_row_over(runs, operands, row, y, p);
    } else {
        const Runs<2> runs(y.shape, {inputs[0].shape, inputs[1].shape});
        std::array operands = {Operand(inputs[0], runs.step(0) != 0),
                               Operand(inputs[1], runs.step(1) != 0)};
        run_row_over(runs, operands, row, y, p);
    }
}

void run_row_over_all(Row row, Row divide, std::span<const Array> inputs, const Array& y) {
    const int64_t size = row_size(y.type), elements = y.elements();
    std::vector<std::byte> results(static_cast<size_t>(elements * size));
    for (const Array& input : inputs) {
        const Runs<1> runs(y.shape, {input.shape});
        std::array operands = {Operand(input, runs.step(0) != 0)};
        for_each_chunk(runs, operands, [&](int64_t at, int64_t n, const auto& x) {
            std::byte* to = results.data() + at * size;
            const std::byte* both[] = {to, x[0]};
            if (&input == inputs.data())
                std::memcpy(to, x[0], static_cast<size_t>(n * size));
            else
                row(both, to, n, {});
        });
    }
    if (divide) {
        const Array all{type_in_row(y.type), y.shape, results.data()};
        float single = static_cast<float>(inputs.size());
        double twice = static_cast<double>(inputs.size());
        std::byte* count = y.type == DataType::float64 ? reinterpret_cast<std::byte*>(&twice)
                                                       : reinterpret_cast<std::byte*>(&single);
        const Array both[] = {all, {all.type, {}, count}};
        return run_row(divide, both, y);
    }
    if (is_half(y.type))
        narrow(y.type, reinterpret_cast<float*>(results.data()), y.data, elements);
    else
        std::memcpy(y.data, results.data(), results.size());
}

}  // namespace vartml::cpu
