// SPDX-License-Identifier: Apache-2.0
#include "lib/run/vart/options.h"

#include <gtest/gtest.h>

#include <cstdlib>

namespace {
using vartml::runtime::Options;
using vartml::runtime::parse_options;
using Map = std::unordered_map<std::string, std::any>;

TEST(Options, HaveTheGivenDefaults) {
    unsetenv("VARTML_DEVICE");
    const auto options = parse_options({});
    ASSERT_TRUE(options);
    EXPECT_EQ(options->input_tensor_type, vart::TensorType::HW);
    EXPECT_EQ(options->output_tensor_type, vart::TensorType::HW);
    EXPECT_FALSE(options->skip_in_bo_sync || options->skip_out_bo_sync);
    EXPECT_EQ(options->cma_index, 0);
    EXPECT_TRUE(options->aie_columns_sharing);
    EXPECT_FALSE(options->start_column);
    EXPECT_EQ(options->async_threadpool_depth, 10u);
    EXPECT_EQ(options->max_concurrent_runs, 2u);
    EXPECT_TRUE(options->callbacks_in_submission_order);
    EXPECT_EQ(options->log_level, vartml::LogLevel::info);
    EXPECT_FALSE(options->ai_analyzer_profiling);
    EXPECT_EQ(options->device, "auto");
    EXPECT_EQ(options->memory, "host");
    EXPECT_EQ(options->numerics, "auto");
    EXPECT_EQ(options->threads, 0u);
}

TEST(Options, TakeEveryPayloadTypeOfTheInterface) {
    using namespace std::literals;
    const Map map = {{"input_tensor_type", std::string("CPU")},
                     {"output_tensor_type", "CPU"},
                     {"callback_order", "completion"sv},
                     {"max_concurrent_runs", uint32_t{4}},
                     {"async_threadpool_depth", size_t{3}},
                     {"start_column", int8_t{8}},
                     {"cma_index", 2L},
                     {"aie_columns_sharing", false},
                     {"vartml_threads", static_cast<short>(2)}};
    const auto options = parse_options(map);
    ASSERT_TRUE(options) << options.error().message;
    EXPECT_EQ(options->input_tensor_type, vart::TensorType::CPU);
    EXPECT_EQ(options->output_tensor_type, vart::TensorType::CPU);
    EXPECT_FALSE(options->callbacks_in_submission_order);
    EXPECT_EQ(options->max_concurrent_runs, 4u);
    EXPECT_EQ(options->async_threadpool_depth, 3u);
    EXPECT_EQ(options->start_column, 8u);
    EXPECT_EQ(options->cma_index, 2);
    EXPECT_FALSE(options->aie_columns_sharing);
    EXPECT_EQ(options->threads, 2u);
}

TEST(Options, ChooseTheViewOfSingleTensors) {
    using vart::TensorDirection;
    using vart::TensorType;
    const auto options = parse_options({{"input_tensor_type", "CPU"},
                                        {"input_tensor_type.images", std::string("HW")},
                                        {"output_tensor_type./head.0/y", "CPU"},
                                        {"enable_xrt_run_pool", true}});
    ASSERT_TRUE(options) << options.error().message;
    EXPECT_EQ(options->tensor_type(TensorDirection::INPUT, "images"), TensorType::HW);
    EXPECT_EQ(options->tensor_type(TensorDirection::INPUT, "mask"), TensorType::CPU);
    EXPECT_EQ(options->tensor_type(TensorDirection::OUTPUT, "/head.0/y"), TensorType::CPU);
    EXPECT_EQ(options->tensor_type(TensorDirection::OUTPUT, "images"), TensorType::HW);
}

TEST(Options, TakeTheDeviceOfTheEnvironmentWhereNoneIsSet) {
    setenv("VARTML_DEVICE", "softnpu", 1);
    EXPECT_EQ(parse_options({})->device, "softnpu");
    EXPECT_EQ(parse_options({{"vartml_device", "fake"}})->device, "fake");
    unsetenv("VARTML_DEVICE");
}

TEST(Options, ThatDoNothingHereAreToldWhereTheyAreAskedFor) {
    const auto options = parse_options({{"enable_xrt_run_pool", true},
                                        {"ai_analyzer_visualization", true},
                                        {"no_failsafe", false}});
    ASSERT_TRUE(options) << options.error().message;
    EXPECT_EQ(options->without_effect,
              (std::vector<std::string>{"ai_analyzer_visualization", "enable_xrt_run_pool"}));
}

TEST(Options, OfThePageAreThoseThatAreTaken) {
    const auto rows = vartml::runtime::known_options();
    EXPECT_EQ(rows.size(), 27u);
    for (const auto& row : rows) {
        EXPECT_FALSE(row.type.empty() || row.meaning.empty()) << row.key;
        // A value of another type than any: the sentence names what the page names.
        const auto refused = parse_options({{row.key, 0.5}});
        ASSERT_FALSE(refused) << row.key;
        const std::string kind = row.type.substr(0, row.type.find(','));
        const std::string expected = kind.starts_with("'") ? "string" : kind;
        EXPECT_NE(refused.error().message.find("option '" + row.key + "' holds a double"),
                  std::string::npos)
            << refused.error().message;
        EXPECT_TRUE(refused.error().message.ends_with(expected)) << refused.error().message;
    }
}

struct Fault {
    Map map;
    const char* text;  // exact, or the beginning where it ends in "..."
};

TEST(Options, SayWhatIsWrongExactly) {
    const Fault faults[] = {
        // given by the interface description
        {{{"max_concurent_runs", 2}},
         "create_runner: unknown option 'max_concurent_runs'; did you mean 'max_concurrent_runs'?"},
        {{{"start_column", std::string("1")}},
         "create_runner: option 'start_column' holds a std::string, expected an unsigned integer"},
        {{{"callback_order", "fifo"}},
         "create_runner: option 'callback_order' is 'fifo', expected 'submission' or 'completion'"},
        {{{"max_concurrent_runs", 0}},
         "create_runner: option 'max_concurrent_runs' is 0, expected 1 to 4096"},
        // far from every key: the list
        {{{"colour", 1}},
         "create_runner: unknown option 'colour'; known: ai_analyzer_profiling, ..."},
        // a bool is no integer, an integer no bool
        {{{"vartml_threads", true}},
         "create_runner: option 'vartml_threads' holds a bool, expected an unsigned integer"},
        {{{"debug", 1}}, "create_runner: option 'debug' holds an integer, expected a bool"},
        {{{"input_tensor_type", 3.0}},
         "create_runner: option 'input_tensor_type' holds a double, expected a string"},
        {{{"name", static_cast<const char*>(nullptr)}},
         "create_runner: option 'name' holds a null pointer, expected a string"},
        {{{"debug", std::any()}}, "create_runner: option 'debug' holds nothing, expected a bool"},
        // ranges at both ends
        {{{"max_concurrent_runs", 4097}},
         "create_runner: option 'max_concurrent_runs' is 4097, expected 1 to 4096"},
        {{{"start_column", -1}},
         "create_runner: option 'start_column' is -1, expected 0 to 4294967295"},
        {{{"cma_index", 16}}, "create_runner: option 'cma_index' is 16, expected 0 to 15"},
        {{{"cma_index", INT64_MIN}},
         "create_runner: option 'cma_index' is -9223372036854775808, expected 0 to 15"},
        {{{"xdna_device_index", 256u}},
         "create_runner: option 'xdna_device_index' is 256, expected 0 to 255"},
        {{{"input_tensor_type", "cpu"}},
         "create_runner: option 'input_tensor_type' is 'cpu', expected 'HW' or 'CPU'"},
        {{{"input_tensor_type.x", "cpu"}},
         "create_runner: option 'input_tensor_type.x' is 'cpu', expected 'HW' or 'CPU'"},
        {{{"output_tensor_type.y", 1}},
         "create_runner: option 'output_tensor_type.y' holds an integer, expected a string"},
        {{{"output_tensor_type.", "CPU"}},
         "create_runner: option 'output_tensor_type.' names no tensor, expected the name of an "
         "output of the model behind the dot"},
        {{{"log_level", "warn"}},
         "create_runner: option 'log_level' is 'warn', expected 'ERROR', 'WARNING', 'INFO' or "
         "'DEBUG'"},
        // several faults: the alphabetically first key
        {{{"vartml_memory", "disk"}, {"debug", 1}, {"zebra", 1}},
         "create_runner: option 'debug' holds an integer, expected a bool"},
    };
    for (const Fault& fault : faults) {
        const auto options = parse_options(fault.map);
        ASSERT_FALSE(options) << fault.text;
        EXPECT_EQ(options.error().code, vartml::ErrorCode::invalid_argument);
        std::string_view text = fault.text;
        if (text.ends_with("...")) {
            text.remove_suffix(3);
            EXPECT_EQ(options.error().message.substr(0, text.size()), text);
        } else {
            EXPECT_EQ(options.error().message, text);
        }
    }
}

}  // namespace
