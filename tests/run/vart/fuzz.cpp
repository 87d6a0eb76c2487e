// SPDX-License-Identifier: Apache-2.0
// Random options, descriptions and calls: nothing crashes, and each sentence has the form that a
// reader can use.
#include <gtest/gtest.h>

#include <random>
#include <regex>
#include <stdexcept>

#include "lib/base/text.h"
#include "lib/run/vart/options.h"
#include "lib/run/vart/runner.h"
#include "lib/run/vart/tensor_info.h"
#include "tests/support/fake_runner.h"

namespace {
using namespace vart;
using namespace vartml::test;
using vartml::runtime::Tensors;
using Map = std::unordered_map<std::string, std::any>;

constexpr unsigned seed = 20260701;

// One line of at most 600 bytes that names `object`, without a final period, a pointer value or a
// control character, and that says more than that something failed.
void expect_good(const std::string& text, const std::string& object) {
    static const std::regex pointer("0x[0-9a-f]{6}");
    SCOPED_TRACE(text);
    EXPECT_LE(text.size(), 600u);
    EXPECT_FALSE(text.empty());
    EXPECT_NE(text.find(object), std::string::npos) << "expected: " << object;
    EXPECT_FALSE(std::regex_search(text, pointer));
    EXPECT_FALSE(text.ends_with('.') && !text.ends_with("..."));
    EXPECT_TRUE(vartml::is_plain_text(text));
    for (const char* empty : {"failed", "unknown error", "init failed"})
        EXPECT_FALSE(text.ends_with(std::string(": ") + empty));
    EXPECT_GE(std::ranges::count(text, ' '), 4);
}

class Random {
public:
    explicit Random(unsigned start) : engine_(start) {}
    size_t below(size_t end) { return engine_() % end; }
    bool chance(unsigned percent) { return below(100) < percent; }
    template <typename T>
    const T& of(const std::vector<T>& values) {
        return values[below(values.size())];
    }
    uint64_t bits() { return engine_(); }
    std::string text() {
        static const std::vector<std::string> odd = {"",
                                                     "HW",
                                                     "CPU",
                                                     "hw",
                                                     "INFO",
                                                     "submission",
                                                     "completion",
                                                     "softnpu",
                                                     "host",
                                                     "auto",
                                                     std::string(5000, 'x'),
                                                     std::string("a\0b", 3),
                                                     "line\nbreak",
                                                     "\xff\xfe",
                                                     "it's",
                                                     "%s%n",
                                                     "\x7f\x1b[31m"};
        if (chance(70)) return of(odd);
        std::string text(below(40), ' ');
        for (char& c : text) c = static_cast<char>(engine_());
        return text;
    }

private:
    std::mt19937_64 engine_;
};

std::any payload(Random& random) {
    const uint64_t bits = random.chance(50) ? random.below(50) : random.bits();
    switch (random.below(14)) {
        case 0:
            return std::any();
        case 1:
            return random.chance(50);
        case 2:
            return random.text();
        case 3:
            return static_cast<const char*>("CPU");
        case 4:
            return static_cast<const char*>(nullptr);
        case 5:
            return std::string_view("HW");
        case 6:
            return static_cast<int>(bits);
        case 7:
            return static_cast<uint32_t>(bits);
        case 8:
            return static_cast<int64_t>(bits);
        case 9:
            return bits;
        case 10:
            return static_cast<int8_t>(bits);
        case 11:
            return 2.5;
        case 12:
            return std::vector<int>{1, 2};
        default:
            return static_cast<uint16_t>(bits);
    }
}

// The factory with a model that does not exist: options come first, then the model.
TEST(RandomOptions, AreTakenOrRefusedInOneSentence) {
    Random random(seed);
    const std::vector<std::string> keys = {"input_tensor_type",
                                           "output_tensor_type",
                                           "skip_in_bo_sync",
                                           "skip_out_bo_sync",
                                           "cma_index",
                                           "aie_columns_sharing",
                                           "start_column",
                                           "async_threadpool_depth",
                                           "max_concurrent_runs",
                                           "callback_order",
                                           "log_level",
                                           "debug",
                                           "config_json",
                                           "cache_path",
                                           "ai_analyzer_profiling",
                                           "name",
                                           "xdna_device_index",
                                           "ai_analyzer_visualization",
                                           "no_failsafe",
                                           "enable_xrt_run_pool",
                                           "input_tensor_type.x",
                                           "output_tensor_type.y",
                                           "vartml_device",
                                           "vartml_memory",
                                           "vartml_numerics",
                                           "vartml_threads",
                                           "vartml_noncoherent"};
    unsigned refused = 0, taken = 0;
    for (int i = 0; i < 20000 && !testing::Test::HasFailure(); ++i) {
        Map map;
        for (size_t n = random.below(4); n > 0; --n) {
            std::string key = random.of(keys);
            if (random.chance(10)) key = random.text();
            if (random.chance(10) && !key.empty()) key[random.below(key.size())] ^= 1;
            map[key] = payload(random);
        }
        SCOPED_TRACE("seed " + std::to_string(seed) + ", case " + std::to_string(i));
        try {
            RunnerFactory::create_runner(RunnerType::VAIML, "/nowhere/model.rai", map);
            ADD_FAILURE() << "there is no such model";
        } catch (const std::invalid_argument& e) {
            ++refused;
            expect_good(e.what(), "option '");
        } catch (const std::runtime_error& e) {
            ++taken;
            const std::string text = e.what();
            expect_good(text, text.find("option '") == std::string::npos ? "/nowhere/model.rai"
                                                                         : "option '");
        }
    }
    EXPECT_GT(refused, 1000u);
    EXPECT_GT(taken, 1000u);
}

NpuTensorInfo good_info() {
    NpuTensorInfo info;
    info.name = "x";
    info.data_type = DataType::BF16;
    info.memory_layout = MemoryLayout::HCWNC4;
    info.shape = {4, 1, 5, 1, 4};
    info.strides = {20, 20, 4, 4, 1};
    info.size = 80;
    info.size_in_bytes = 160;
    return info;
}

NpuTensorInfo mutate(Random& random, NpuTensorInfo info) {
    const std::vector<uint32_t> numbers = {0, 1, 2, 3, 4, 5, 8, 255, 0x7fffffff, 0xffffffff};
    const std::vector<size_t> sizes = {0, 1, 79, 80, 159, 160, 161, 4096, SIZE_MAX, SIZE_MAX / 2};
    const auto change = [&](std::vector<uint32_t>& list) {
        if (random.chance(30)) list.resize(random.below(12), 1);
        if (!list.empty()) list[random.below(list.size())] = random.of(numbers);
    };
    for (size_t n = random.below(4); n > 0; --n) switch (random.below(10)) {
            case 0:
                info.name = random.text();
                break;
            case 1:
                info.data_type = static_cast<DataType>(random.below(16) - 1);
                break;
            case 2:
                info.memory_layout = static_cast<MemoryLayout>(random.below(23) - 1);
                break;
            case 3:
                info.direction = static_cast<TensorDirection>(random.below(2));
                break;
            case 4:
                info.tensor_type = static_cast<TensorType>(random.below(2));
                break;
            case 5:
                change(info.shape);
                break;
            case 6:
                change(info.strides);
                break;
            case 7:
                change(info.memory_layout_order);
                break;
            case 8:
                info.size = random.of(sizes);
                break;
            default:
                info.size_in_bytes = random.of(sizes);
        }
    return info;
}

// Large enough for whatever is accepted: never touched beyond what exists, since only the size of
// the model's tensor counts in a run.
TEST(RandomDescriptions, AreTakenOrRefusedInOneSentence) {
    Random random(seed);
    FakeDevice device;
    const auto runner = make_runner(picture_model());
    LogLines log;
    alignas(64) static std::byte memory[4096];
    int not_open = 999999;
    unsigned refused = 0, taken = 0, ran = 0;
    const Tensors outputs = allocate(*runner, TensorDirection::OUTPUT);
    const NpuTensor parent = runner->allocate_npu_tensor(good_info());
    for (int i = 0; i < 20000 && !testing::Test::HasFailure(); ++i) {
        const NpuTensorInfo info = mutate(random, good_info());
        SCOPED_TRACE("seed " + std::to_string(seed) + ", case " + std::to_string(i));
        const auto type = static_cast<MemoryType>(random.below(7) - 1);
        void* buffer = memory + random.below(3);
        if (type == MemoryType::DMA_FD) buffer = &not_open;
        if (random.chance(5)) buffer = nullptr;
        try {
            NpuTensor tensor(info, buffer, type);
            ++taken;
            (void)vartml::runtime::to_text(tensor.get_info());
            Tensors ins{{tensor}}, outs = outputs;
            const StatusCode status = runner->execute(ins, outs);
            ran += status == StatusCode::SUCCESS;
            const auto lines = log.take();
            if (status != StatusCode::SUCCESS) {
                EXPECT_EQ(status, StatusCode::INVALID_INPUT);
                ASSERT_EQ(lines.size(), 1u);
                expect_good(lines[0].second, "input 'x'");
            }
        } catch (const std::runtime_error& e) {
            ++refused;
            expect_good(e.what(), "NpuTensor '");
        }
        try {
            (void)runner->allocate_sub_tensor(parent, info, random.below(200));
        } catch (const std::invalid_argument& e) {
            expect_good(e.what(), "allocate_sub_tensor: ");
        }
        if (info.size_in_bytes > 1 << 20 && info.size_in_bytes < SIZE_MAX / 2) continue;
        try {
            (void)runner->allocate_npu_tensor(info, static_cast<uint32_t>(random.below(20)));
        } catch (const std::invalid_argument& e) {
            expect_good(e.what(), "allocate_npu_tensor: ");
        } catch (const std::runtime_error& e) {
            expect_good(e.what(), "tensor '");
        }
    }
    EXPECT_GT(refused, 1000u);
    EXPECT_GT(taken, 1000u);
    EXPECT_GT(ran, 100u);
}

TEST(RandomKeys, AreNamedInTheRefusal) {
    Random random(seed);
    FakeDevice device;
    const auto runner = make_runner(picture_model());
    for (int i = 0; i < 2000; ++i) {
        const std::string key = random.text();
        try {
            (void)runner->get_property(key);
        } catch (const std::invalid_argument& e) {
            expect_good(e.what(), "get_property: ");
        }
        try {
            (void)runner->get_tensor_info_by_name(key, static_cast<TensorType>(random.below(2)));
            ADD_FAILURE() << key;
        } catch (const std::runtime_error& e) {
            expect_good(e.what(), "get_tensor_info_by_name: ");
        }
        try {
            (void)runner->get_quant_parameters(key);
            ADD_FAILURE() << key;
        } catch (const std::runtime_error& e) {
            expect_good(e.what(), "get_quant_parameters: ");
        }
    }
}

}  // namespace
