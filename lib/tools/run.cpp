// SPDX-License-Identifier: Apache-2.0
// `vartml run`: runs a compiled model on given or fixed pseudo-random data, measures, compares.
#include <sys/resource.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <any>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <vartml/compile.h>
#include <vartml/model.h>
#include <vart/vart_runner_factory.hpp>

#include "lib/artifact/compiled_model.h"
#include "lib/tensor/convert.h"
#include "lib/tools/arguments.h"
#include "lib/tools/commands.h"
#include "lib/tools/random_data.h"
#include "lib/tools/run_report.h"
#include "lib/tools/tensor_file.h"
#include "lib/verify/compare.h"
#include "lib/verify/computed.h"

namespace vartml::tools {
namespace {

using Clock = std::chrono::steady_clock;
using Batch = std::vector<std::vector<vart::NpuTensor>>;
using vart::TensorDirection;
using vart::TensorType;

struct Options {
    std::string model;
    std::vector<std::string> input_files;  // NAME=FILE
    std::string inputs_dir, expect_dir, json_file;
    std::optional<double> tolerance;
    std::string numerics = "auto", view = "auto", device;
    unsigned warmup = 5, iterations = 40, in_flight = 1, threads = 0;
    double seconds = 0;
    bool steps = false;
    // Of `view`, once the model is known.
    TensorType input_view = TensorType::HW, output_view = TensorType::HW;
};

void add_options(CLI::App& app, Options& o) {
    app.add_option("MODEL", o.model, "a compiled model, or an ONNX file, which is compiled first")
        ->required();
    app.add_option("--input", o.input_files, "contents of an input, .npy or .pb; repeatable")
        ->type_name("NAME=FILE")
        ->expected(1)
        ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
    app.add_option("--inputs", o.inputs_dir, "folder with input_<i>.npy or .pb")->type_name("DIR");
    app.add_option("--expect", o.expect_dir,
                   "folder with output_<i>.npy or .pb; exit 6 if the outputs differ")
        ->type_name("DIR");
    app.add_option("--tolerance", o.tolerance, "replaces the limit of the comparison")
        ->type_name("T");
    app.add_option("--numerics", o.numerics,
                   "type of float work: auto, f32, or bf16 also where that is slow")
        ->type_name("auto|f32|bf16")
        ->check(CLI::IsMember({"auto", "f32", "bf16"}))
        ->capture_default_str();
    app.add_option("--view", o.view,
                   "tensors that the runner gets: hw in place, cpu converted; auto: hw where every "
                   "tensor of that direction has it")
        ->type_name("auto|hw|cpu")
        ->check(CLI::IsMember({"auto", "hw", "cpu"}))
        ->capture_default_str();
    app.add_option("--device", o.device, "the device [the one that the program is for]")
        ->type_name("NAME");
    app.add_option("--threads", o.threads, "threads of the software NPU [processors]")
        ->type_name("N")
        ->check(CLI::Range(0u, 1024u));
    app.add_option("--warmup", o.warmup, "runs before the measurement")
        ->type_name("N")
        ->capture_default_str();
    app.add_option("-n,--iterations,--num-iter", o.iterations, "runs that are measured")
        ->type_name("N")
        ->check(CLI::Range(1u, 1000000000u))
        ->capture_default_str();
    app.add_option("--time", o.seconds, "measure for this time instead of a number of runs")
        ->type_name("S")
        ->check(CLI::PositiveNumber);
    app.add_option("--in-flight", o.in_flight, "jobs submitted at the same time")
        ->type_name("N")
        ->check(CLI::Range(1u, 256u))
        ->capture_default_str();
    app.add_option("--json", o.json_file, "also write the figures to this file")->type_name("FILE");
    app.add_flag("--steps", o.steps, "print the time of each step of the program");
}

// ---- the runner -------------------------------------------------------------------------------

Result<std::string> compiled(const std::string& model) {
    std::error_code error;
    if (!std::filesystem::exists(model, error))
        return Error{ErrorCode::not_found,
                     model + ": " + (error ? error.message() : "no such file")};
    if (!model.ends_with(".onnx")) return model;
    CompileOptions options;
    options.progress = [](int percent, const std::string& stage) {
        std::fprintf(stderr, "compiling: %d %% %s\n", percent, stage.c_str());
    };
    auto result = compile_onnx(model, options);
    if (!result) return result.error();
    return result->path;
}

Result<std::shared_ptr<vart::Runner>> open_runner(const std::string& path, const Options& o) {
    const auto view = [](TensorType type) {
        return std::string(type == TensorType::HW ? "HW" : "CPU");
    };
    std::unordered_map<std::string, std::any> options = {
        {"input_tensor_type", view(o.input_view)},
        {"output_tensor_type", view(o.output_view)},
        {"max_concurrent_runs", std::max(2u, o.in_flight)},
        {"log_level", "WARNING"},
        {"name", "run"},
        {"vartml_numerics", o.numerics},
        {"vartml_threads", o.threads},
    };
    if (!o.device.empty()) options["vartml_device"] = o.device;
    try {
        return vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, path, options);
    } catch (const std::invalid_argument& e) {
        return Error{ErrorCode::invalid_argument, e.what()};
    } catch (const std::exception& e) {
        return Error{ErrorCode::bad_model, e.what()};
    }
}

template <typename T>
T property(const vart::Runner& runner, const char* key) {
    return std::any_cast<T>(runner.get_property(key));
}

// ---- data -------------------------------------------------------------------------------------

TensorView view_of(const vart::NpuTensorInfo& info, const vart::QuantParameters& quant) {
    TensorView view =
        make_view(static_cast<DataType>(info.data_type), static_cast<Layout>(info.memory_layout),
                  info.shape, info.memory_layout_order);
    if (quant.rounding_mode != vart::RoundingMode::UNKNOWN)
        view.quantisation = Quantisation{quant.scale, quant.zero_point};
    return view;
}

// Bytes of a tensor in one view to bytes in another.
Result<void> convert(const vart::Runner& runner, const std::string& name, TensorType from,
                     TensorType to, const void* src, void* dst) {
    const auto& quant = runner.get_quant_parameters(name);
    const auto view = [&](TensorType type) {
        return view_of(runner.get_tensor_info_by_name(name, type),
                       type == TensorType::HW ? quant : vart::QuantParameters{});
    };
    auto conversion = Conversion::create(view(from), view(to));
    if (!conversion) return conversion.error();
    conversion->run(src, dst);
    return {};
}

std::string shape_text(const std::vector<int64_t>& shape) {
    std::string text = "[";
    for (size_t i = 0; i < shape.size(); ++i) text += (i ? "," : "") + std::to_string(shape[i]);
    return text + "]";
}

Result<std::vector<std::byte>> bytes_of_file(const std::string& file,
                                             const vart::NpuTensorInfo& info) {
    auto data = read_tensor(file);
    if (!data) return data.error();
    std::vector<int64_t> shape(info.shape.begin(), info.shape.end());
    if (data->type != static_cast<DataType>(info.data_type) ||
        (data->shape != shape && !(data->shape.empty() && shape == std::vector<int64_t>{1})))
        return Error{ErrorCode::invalid_argument,
                     file + ": holds " + std::string(to_string(data->type)) + " " +
                         shape_text(data->shape) + ", input '" + info.name + "' is " +
                         std::string(to_string(static_cast<DataType>(info.data_type))) + " " +
                         shape_text(shape)};
    return std::move(data->bytes);
}

// The file for each input; missing ones get pseudo-random data.
Result<std::map<std::string, std::string>> files_of(const Options& o, const vart::Runner& runner) {
    const auto& infos = runner.get_tensors_info(TensorDirection::INPUT, TensorType::CPU);
    std::map<std::string, std::string> files;
    for (size_t i = 0; !o.inputs_dir.empty() && i < infos.size(); ++i) {
        const auto file = find_tensor_file(o.inputs_dir, "input", i);
        if (!file)
            return Error{ErrorCode::not_found, "--inputs: " + o.inputs_dir + " has no input_" +
                                                   std::to_string(i) + ".npy or .pb for input '" +
                                                   infos[i].name + "'"};
        files[infos[i].name] = *file;
    }
    for (const std::string& text : o.input_files) {
        const size_t equals = text.rfind('=');
        const std::string name = text.substr(0, equals);
        const bool known =
            std::ranges::any_of(infos, [&](const auto& i) { return i.name == name; });
        if (equals == std::string::npos || !known) {
            std::string names;
            for (const auto& info : infos) names += (names.empty() ? "'" : ", '") + info.name + "'";
            return Error{ErrorCode::invalid_argument,
                         "--input: is '" + text + "', expected NAME=FILE with a NAME of " + names};
        }
        files[name] = text.substr(equals + 1);
    }
    return files;
}

struct Buffers {
    Batch inputs, outputs;
};

Result<Buffers> make_buffers(const Options& o, const vart::Runner& runner,
                             const std::map<std::string, std::string>& files) {
    const TensorType type = o.input_view;
    Buffers buffers{Batch(1), Batch(1)};
    unsigned seed = 1;
    for (const auto& cpu : runner.get_tensors_info(TensorDirection::INPUT, TensorType::CPU)) {
        const auto& info = runner.get_tensor_info_by_name(cpu.name, type);
        std::vector<std::byte> bytes;
        if (const auto file = files.find(cpu.name); file != files.end()) {
            auto read = bytes_of_file(file->second, cpu);
            if (!read) return read.error();
            bytes = std::move(*read);
        } else {
            bytes = random_bytes(static_cast<DataType>(cpu.data_type), cpu.size_in_bytes, seed);
        }
        ++seed;
        vart::NpuTensor tensor = runner.allocate_npu_tensor(info);
        void* const dst = tensor.get_virtual_address();
        if (type == TensorType::CPU) {
            std::memcpy(dst, bytes.data(), bytes.size());
        } else if (auto done = convert(runner, cpu.name, TensorType::CPU, TensorType::HW,
                                       bytes.data(), dst);
                   !done) {
            return done.error();
        }
        buffers.inputs[0].push_back(std::move(tensor));
    }
    for (const auto& info : runner.get_tensors_info(TensorDirection::OUTPUT, o.output_view))
        buffers.outputs[0].push_back(runner.allocate_npu_tensor(info));
    return buffers;
}

// ---- running ----------------------------------------------------------------------------------

Error run_error(const vart::Runner& runner) {
    return {ErrorCode::device, property<std::string>(runner, "last_error")};
}

double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double us_between(Clock::time_point a, Clock::time_point b) {
    return std::chrono::duration<double, std::micro>(b - a).count();
}

// When is it enough?
class Goal {
public:
    explicit Goal(const Options& o) : options_(o), start_(Clock::now()) {}
    bool reached(size_t runs) const {
        return options_.seconds > 0 ? us_between(start_, Clock::now()) >= options_.seconds * 1e6
                                    : runs >= options_.iterations;
    }

private:
    const Options& options_;
    Clock::time_point start_;
};

Result<void> run_one_by_one(const Options& o, vart::Runner& runner, Buffers& buffers,
                            RunMeasurement& m) {
    const Goal goal(o);
    while (!goal.reached(m.round_trip_us.size())) {
        const auto begin = Clock::now();
        if (runner.execute(buffers.inputs, buffers.outputs) != vart::StatusCode::SUCCESS)
            return run_error(runner);
        m.round_trip_us.push_back(us_between(begin, Clock::now()));
    }
    m.most_in_flight = 1;
    return {};
}

// Keeps `in_flight` jobs submitted, each with buffers of its own, and waits for the oldest.
Result<void> run_in_flight(const Options& o, vart::Runner& runner, std::vector<Buffers>& buffers,
                           RunMeasurement& m) {
    struct Job {
        vart::JobHandle handle;
        Clock::time_point begin;
    };
    std::deque<Job> jobs;
    size_t submitted = 0;
    const Goal goal(o);
    Result<void> result;
    for (;;) {
        while (result && jobs.size() < buffers.size() && !goal.reached(submitted)) {
            Buffers& own = buffers[submitted % buffers.size()];
            const auto begin = Clock::now();
            const vart::JobHandle handle = runner.execute_async(own.inputs, own.outputs);
            if (handle.status != vart::StatusCode::SUCCESS) {
                result = run_error(runner);
                break;
            }
            jobs.push_back({handle, begin});
            ++submitted;
        }
        m.most_in_flight = std::max(m.most_in_flight, static_cast<unsigned>(jobs.size()));
        if (jobs.empty()) return result;
        const auto status = runner.wait(jobs.front().handle, std::chrono::milliseconds::max());
        if (status != vart::StatusCode::SUCCESS && result) result = run_error(runner);
        m.round_trip_us.push_back(us_between(jobs.front().begin, Clock::now()));
        jobs.pop_front();
    }
}

Result<RunMeasurement> measure(const Options& o, vart::Runner& runner,
                               std::vector<Buffers>& buffers) {
    for (unsigned i = 0; i < o.warmup; ++i)
        if (runner.execute(buffers[0].inputs, buffers[0].outputs) != vart::StatusCode::SUCCESS)
            return run_error(runner);
    RunMeasurement m;
    m.in_flight = o.in_flight;
    const auto view = [](TensorType type) { return type == TensorType::HW ? "hw" : "cpu"; };
    m.view = view(o.input_view);
    if (o.input_view != o.output_view)
        m.view += std::string(" in, ") + view(o.output_view) + " out";
    m.model = property<std::string>(runner, "model_name");
    m.backend = property<std::string>(runner, "backend");
    m.compute_type = property<std::string>(runner, "compute_type");
    const auto copied = [&] {
        return property<uint64_t>(runner, "bytes_copied_in") +
               property<uint64_t>(runner, "bytes_copied_out");
    };
    const uint64_t copied_before = copied();
    const uint64_t conversions_before = property<uint64_t>(runner, "conversions");
    const double cpu_before = cpu_seconds();
    const auto begin = Clock::now();
    auto done = o.in_flight == 1 ? run_one_by_one(o, runner, buffers[0], m)
                                 : run_in_flight(o, runner, buffers, m);
    if (!done) return done.error();
    m.total_us = us_between(begin, Clock::now());
    m.cpu_seconds = cpu_seconds() - cpu_before;
    m.bytes_copied = copied() - copied_before;
    m.conversions = property<uint64_t>(runner, "conversions") - conversions_before;
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    m.peak_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
    return m;
}

// ---- results ----------------------------------------------------------------------------------

// Bytes of an output in its CPU view.
Result<TensorData> output_data(const Options& o, const vart::Runner& runner,
                               vart::NpuTensor& tensor) {
    const auto& cpu = runner.get_tensor_info_by_name(tensor.get_info().name, TensorType::CPU);
    TensorData data;
    data.type = static_cast<DataType>(cpu.data_type);
    data.shape.assign(cpu.shape.begin(), cpu.shape.end());
    data.bytes.resize(cpu.size_in_bytes);
    const void* const src = tensor.get_virtual_address();
    if (o.output_view == TensorType::CPU) {
        std::memcpy(data.bytes.data(), src, data.bytes.size());
        return data;
    }
    if (auto done =
            convert(runner, cpu.name, TensorType::HW, TensorType::CPU, src, data.bytes.data());
        !done)
        return done.error();
    return data;
}

Result<bool> check_outputs(const Options& o, const std::string& path, vart::Runner& runner,
                           Batch& outputs) {
    const auto model = artifact::read(path);
    if (!model) return model.error();
    bool is_good = true;
    for (size_t i = 0; i < outputs[0].size(); ++i) {
        const std::string name = outputs[0][i].get_info().name;
        const auto file = find_tensor_file(o.expect_dir, "output", i);
        if (!file)
            return Error{ErrorCode::not_found, "--expect: " + o.expect_dir + " has no output_" +
                                                   std::to_string(i) + ".npy or .pb for output '" +
                                                   name + "'"};
        auto expected = read_tensor(*file);
        if (!expected) return expected.error();
        auto found = output_data(o, runner, outputs[0][i]);
        if (!found) return found.error();
        const verify::Tolerance tolerance =
            verify::tolerance_of(found->type, verify::computed_type(runner, name),
                                 verify::step_of(*model, runner, name), o.tolerance);
        auto comparison = verify::compare(*found, *expected, tolerance, *file);
        if (!comparison) return comparison.error();
        std::printf("output '%s': %s: %s\n", name.c_str(),
                    comparison->is_good ? "as expected" : "NOT as expected",
                    comparison->text.c_str());
        is_good = is_good && comparison->is_good;
    }
    return is_good;
}

void print_steps(const vart::Runner& runner) {
    const auto text = property<std::string>(runner, "vartml_internal_steps");
    const auto times = property<std::vector<double>>(runner, "vartml_internal_step_times");
    double total = 0;
    for (const double t : times) total += t;
    std::printf("steps: %zu, %.1f us\n", times.size(), total / 1000);
    size_t begin = 0;
    for (const double time : times) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        std::printf("%10.1f us %5.1f %%  %s\n", time / 1000, total > 0 ? time / total * 100 : 0,
                    text.substr(begin, end - begin).c_str());
        begin = std::min(end + 1, text.size());
    }
}

int fail(const Error& error) {
    print_error(error);
    return exit_of_model(error);
}

// A direction has HW views where every tensor of it has one.
Result<void> choose_views(Options& o, const std::string& path) {
    const auto model = open_model(path);
    if (!model) return model.error();
    const auto choose = [&](const std::vector<TensorInfo>& tensors) {
        const bool all =
            std::ranges::all_of(tensors, [](const auto& t) { return t.hw.has_value(); });
        return o.view == "hw" || (o.view == "auto" && all) ? TensorType::HW : TensorType::CPU;
    };
    o.input_view = choose(model->inputs);
    o.output_view = choose(model->outputs);
    return {};
}

int run_model(Options o) {
    const bool is_onnx = o.model.ends_with(".onnx");
    auto path = compiled(o.model);
    if (!path) {
        print_error(path.error());
        return is_onnx ? exit_of(path.error()) : exit_of_model(path.error());
    }
    if (auto chosen = choose_views(o, *path); !chosen) return fail(chosen.error());
    auto runner = open_runner(*path, o);
    if (!runner) return fail(runner.error());
    auto files = files_of(o, **runner);
    if (!files) return fail(files.error());
    std::vector<Buffers> buffers;
    for (unsigned i = 0; i < o.in_flight; ++i) {
        auto made = make_buffers(o, **runner, *files);
        if (!made) return fail(made.error());
        buffers.push_back(std::move(*made));
    }
    auto measurement = measure(o, **runner, buffers);
    if (!measurement) return fail(measurement.error());
    std::fputs(console_text(*measurement).c_str(), stdout);
    if (o.steps) print_steps(**runner);
    if (!o.json_file.empty()) {
        std::ofstream file(o.json_file);
        file << json_text(*measurement);
        if (!file.flush()) return fail({ErrorCode::io, "--json: cannot write " + o.json_file});
    }
    if (o.expect_dir.empty()) return exit_done;
    auto is_good = check_outputs(o, *path, **runner, buffers[0].outputs);
    if (!is_good) return fail(is_good.error());
    return *is_good ? exit_done : exit_not_expected;
}

}  // namespace

int run(int argc, const char* const* argv) {
    CLI::App app("Runs a model on given or fixed pseudo-random data, prints times and compares.",
                 "vartml run");
    Options options;
    add_options(app, options);
    if (const auto status = parse_arguments(app, argc, argv)) return *status;
    return run_model(options);
}

}  // namespace vartml::tools
