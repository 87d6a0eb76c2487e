// SPDX-License-Identifier: Apache-2.0
// `vartml run`: runs a compiled model on given or fixed pseudo-random data, measures, compares.
#include "lib/tools/run.h"

#include <pthread.h>
#include <sys/resource.h>

#include <algorithm>
#include <any>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include <vartml/compile.h>
#include <vartml/model.h>
#include <vartml/version.h>

#include "lib/base/file.h"
#include "lib/tools/arguments.h"
#include "lib/tools/commands.h"
#include "lib/tools/doctor/doctor.h"
#include "lib/tools/energy.h"
#include "lib/tools/progress.h"
#include "lib/tools/run_report.h"
#include "lib/trace/clock.h"

namespace vartml::tools {
namespace {

using profiling::monotonic_ns;

double us_since(uint64_t begin_ns) {
    return static_cast<double>(monotonic_ns() - begin_ns) / 1000.0;
}

double cpu_seconds() {
    rusage usage{};
    getrusage(RUSAGE_SELF, &usage);
    const auto seconds = [](const timeval& t) {
        return static_cast<double>(t.tv_sec) + static_cast<double>(t.tv_usec) * 1e-6;
    };
    return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

Result<JobTimes> run_one_by_one(Activation& a, const std::function<bool(uint64_t)>& is_enough) {
    JobTimes times;
    RunBuffers& buffers = a.buffers[0];
    while (!is_enough(times.round_trip_us.size())) {
        const uint64_t begin = monotonic_ns();
        ++a.submitted;
        if (a.runner->execute(buffers.inputs, buffers.outputs) != vart::StatusCode::SUCCESS)
            return run_error(*a.runner);
        times.round_trip_us.push_back(us_since(begin));
    }
    times.most_in_flight = 1;
    return times;
}

// Each job has buffers of its own; the oldest is waited for.
Result<JobTimes> run_in_flight(Activation& a, const std::function<bool(uint64_t)>& is_enough) {
    struct Job {
        vart::JobHandle handle;
        uint64_t begin = 0;
    };
    JobTimes times;
    std::deque<Job> jobs;
    uint64_t submitted = 0;
    std::optional<Error> error;
    for (;;) {
        while (!error && jobs.size() < a.buffers.size() && !is_enough(submitted)) {
            RunBuffers& own = a.buffers[submitted % a.buffers.size()];
            const uint64_t begin = monotonic_ns();
            const vart::JobHandle handle = a.runner->execute_async(own.inputs, own.outputs);
            if (handle.status != vart::StatusCode::SUCCESS) {
                error = run_error(*a.runner);
                break;
            }
            jobs.push_back({handle, begin});
            ++submitted;
            ++a.submitted;
        }
        times.most_in_flight = std::max(times.most_in_flight, static_cast<unsigned>(jobs.size()));
        if (jobs.empty()) break;
        const auto status = a.runner->wait(jobs.front().handle, std::chrono::milliseconds::max());
        if (status != vart::StatusCode::SUCCESS && !error) error = run_error(*a.runner);
        times.round_trip_us.push_back(us_since(jobs.front().begin));
        jobs.pop_front();
    }
    if (error) return *error;
    return times;
}

// What belongs to the process; the first activation that counts begins, the last one ends.
class ProcessMeter {
public:
    void begin() {
        const std::lock_guard lock(mutex_);
        if (begin_ns_) return;
        energy_.begin();
        cpu_before_ = cpu_seconds();
        begin_ns_ = monotonic_ns();
    }
    void end(RunMeasurement& m) const {
        m.total_us = us_since(begin_ns_);
        m.cpu_seconds = cpu_seconds() - cpu_before_;
        if (const auto joules = energy_.joules())
            m.joules = *joules;
        else
            m.no_energy = joules.error().message;
        rusage usage{};
        getrusage(RUSAGE_SELF, &usage);
        m.peak_rss_bytes = static_cast<uint64_t>(usage.ru_maxrss) * 1024;
    }

private:
    std::mutex mutex_;  // guards the rest until all activations are done
    uint64_t begin_ns_ = 0;
    double cpu_before_ = 0;
    EnergyMeter energy_;
};

struct Counters {
    uint64_t bytes_copied = 0, conversions = 0;
};

Counters counters_of(const vart::Runner& runner) {
    return {property<uint64_t>(runner, "bytes_copied_in") +
                property<uint64_t>(runner, "bytes_copied_out"),
            property<uint64_t>(runner, "conversions")};
}

// The part of one activation.
struct Part {
    JobTimes times;
    Counters copied;
};

Result<Part> measure_one(const RunOptions& o, Activation& a, uint64_t start_ns,
                         ProcessMeter& meter) {
    if (a.collector) {
        const uint64_t begin_ns = start_ns + o.profile.start_delay_ms * 1'000'000;
        auto lead_in = run_jobs(a, [&](uint64_t done) {
            return done >= o.profile.start_iteration && monotonic_ns() >= begin_ns;
        });
        if (!lead_in) return lead_in.error();
        a.collector->begin(a.submitted);
    }
    meter.begin();
    Part part;
    const Counters before = counters_of(*a.runner);
    const uint64_t begin_ns = monotonic_ns();
    auto times = run_jobs(a, [&](uint64_t submitted) {
        if (o.seconds > 0) return submitted > 0 && us_since(begin_ns) >= o.seconds * 1e6;
        return submitted >= o.iterations;
    });
    if (a.collector) a.collector->end();
    if (!times) return times.error();
    const Counters after = counters_of(*a.runner);
    part.times = std::move(*times);
    part.copied = {after.bytes_copied - before.bytes_copied,
                   after.conversions - before.conversions};
    return part;
}

std::string views(const RunOptions& o) {
    const auto view = [](vart::TensorType type) {
        return type == vart::TensorType::HW ? "hw" : "cpu";
    };
    std::string text = view(o.input_view);
    if (o.input_view != o.output_view) text += std::string(" in, ") + view(o.output_view) + " out";
    return text;
}

// One thread per activation, as an application with several runners has.
std::vector<Result<Part>> measure_all(const RunOptions& o, std::vector<Activation>& activations,
                                      ProcessMeter& meter) {
    std::vector<Result<Part>> parts(activations.size(), Part{});
    const uint64_t start_ns = monotonic_ns();
    const auto work = [&](size_t i) {
        try {
            parts[i] = measure_one(o, activations[i], start_ns, meter);
        } catch (const std::bad_alloc&) {
            parts[i] = Error{ErrorCode::out_of_memory, "not enough memory"};
        }
    };
    std::vector<std::jthread> threads;
    for (size_t i = 1; i < activations.size(); ++i)
        threads.emplace_back([&work, i] {
            pthread_setname_np(pthread_self(), ("vartml-run-" + std::to_string(i)).c_str());
            work(i);
        });
    work(0);
    threads.clear();
    return parts;
}

}  // namespace

Result<JobTimes> run_jobs(Activation& activation, const std::function<bool(uint64_t)>& is_enough) {
    return activation.buffers.size() == 1 ? run_one_by_one(activation, is_enough)
                                          : run_in_flight(activation, is_enough);
}

Result<void> warm_up(const RunOptions& o, Activation& a) {
    RunBuffers& buffers = a.buffers[0];
    for (unsigned i = 0; i < o.warmup; ++i) {
        ++a.submitted;
        if (a.runner->execute(buffers.inputs, buffers.outputs) != vart::StatusCode::SUCCESS)
            return run_error(*a.runner);
    }
    return {};
}

Result<RunMeasurement> measure(const RunOptions& o, std::vector<Activation>& activations) {
    for (Activation& a : activations)
        if (auto warm = warm_up(o, a); !warm) return warm.error();
    ProcessMeter meter;
    const auto parts = measure_all(o, activations, meter);
    RunMeasurement m;
    meter.end(m);
    m.activations = o.activations;
    m.in_flight = o.in_flight * o.activations;
    m.most_in_flight = 0;
    for (const auto& part : parts) {
        if (!part) return part.error();
        const auto& times = part->times;
        m.round_trip_us.insert(m.round_trip_us.end(), times.round_trip_us.begin(),
                               times.round_trip_us.end());
        m.most_in_flight += times.most_in_flight;
        m.bytes_copied += part->copied.bytes_copied;
        m.conversions += part->copied.conversions;
    }
    const vart::Runner& runner = *activations[0].runner;
    m.batch_size = runner.get_batch_size();
    m.view = views(o);
    m.model = property<std::string>(runner, "model_name");
    m.backend = property<std::string>(runner, "backend");
    m.compute_type = property<std::string>(runner, "compute_type");
    return m;
}

using vart::TensorType;

Result<std::string> compiled_model(const std::string& model,
                                   const std::vector<std::string>& arguments) {
    std::error_code error;
    if (!std::filesystem::exists(model, error))
        return Error{ErrorCode::not_found,
                     model + ": " + (error ? error.message() : "no such file")};
    if (!model.ends_with(".onnx")) return model;
    CompileOptions options{.arguments = arguments};
    // This very program, wherever it was moved to.
    if (!std::getenv("VARTML_COMPILER")) options.compiler = doctor::own_program();
    Progress progress("compiling " + title_of(model));
    options.progress = [&](int percent, const std::string& stage) {
        progress.show(percent, stage);
    };
    auto result = compile_onnx(model, options);
    if (!result) return result.error();
    return result->path;
}

std::string title_of(const std::string& model) {
    std::error_code error;
    const std::filesystem::path path = without_trailing_slashes(model);
    const auto folder = std::filesystem::absolute(path, error).parent_path().filename();
    const auto stem = path.stem();
    return (stem == "model" && !folder.empty() ? folder : stem).string();
}

Result<void> choose_views(RunOptions& o, const std::string& path) {
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

Result<std::shared_ptr<vart::Runner>> open_runner(
    const std::string& path, const RunOptions& o,
    const std::shared_ptr<profiling::CaptureSink>& sink) {
    const auto view = [](TensorType type) {
        return std::string(type == TensorType::HW ? "HW" : "CPU");
    };
    std::unordered_map<std::string, std::any> options = {
        {"input_tensor_type", view(o.input_view)},
        {"output_tensor_type", view(o.output_view)},
        {"max_concurrent_runs", std::max(2U, o.in_flight)},
        {"async_threadpool_depth", std::max(10U, o.in_flight)},
        {"log_level", "WARNING"},
        {"name", "run"},
        {"vartml_numerics", o.numerics},
        {"vartml_threads", o.threads},
    };
    if (!o.device.empty()) options["vartml_device"] = o.device;
    if (sink) options["vartml_capture_sink"] = sink;
    try {
        return vart::RunnerFactory::create_runner(vart::RunnerType::VAIML, path, options);
    } catch (const std::invalid_argument& e) {
        return Error{ErrorCode::invalid_argument, e.what()};
    } catch (const std::exception& e) {
        return Error{ErrorCode::bad_model, e.what()};
    }
}

Error run_error(const vart::Runner& runner) {
    return {ErrorCode::device, property<std::string>(runner, "last_error")};
}

namespace {

constexpr uint64_t least_jobs = 20, least_ns = 200'000'000;

Result<double> median_of_block(Activation& a, bool is_recorded) {
    if (is_recorded) a.collector->begin(a.submitted);
    const uint64_t begin_ns = profiling::monotonic_ns();
    auto times = run_jobs(a, [&](uint64_t submitted) {
        return submitted >= least_jobs && profiling::monotonic_ns() - begin_ns >= least_ns;
    });
    if (!times) return times.error();
    if (is_recorded) {
        a.collector->end();
        // What is done with a capture belongs to the block that made it.
        a.collector->wait_for_captures(std::chrono::seconds(10));
    }
    return median_interval(std::move(times->round_trip_us)).median;
}

}  // namespace

Result<Overhead> measure_overhead(const RunOptions& o, Activation& activation, unsigned level) {
    if (auto warm = warm_up(o, activation); !warm) return warm.error();
    // A machine whose speed drifts gives both halves of ABBA the same.
    std::vector<double> percents;
    for (size_t pair = 0; pair < least_overhead_pairs; ++pair) {
        const bool recorded_first = pair % 2 == 1;
        auto first = median_of_block(activation, recorded_first);
        if (!first) return first.error();
        auto second = median_of_block(activation, !recorded_first);
        if (!second) return second.error();
        const double with = recorded_first ? *first : *second;
        const double without = recorded_first ? *second : *first;
        percents.push_back((with / without - 1) * 100);
    }
    Overhead overhead{level, percents.size(), median_interval(percents)};
    if (o.profile.overhead_limit) overhead.budget_percent = *o.profile.overhead_limit;
    return overhead;
}

namespace {

int fail(const Error& error) {
    print_error(error);
    return exit_of_model(error);
}

void print_steps(const vart::Runner& runner) {
    const auto text = property<std::string>(runner, "vartml_internal_steps");
    const auto times = property<std::vector<double>>(runner, "vartml_internal_step_times");
    double total = 0;
    for (const double t : times)
        if (!std::isnan(t)) total += t;
    std::printf("steps: %zu, %.1f us\n", times.size(), total / 1000);
    size_t begin = 0;
    for (const double time : times) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        const std::string step = text.substr(begin, end - begin);
        if (std::isnan(time))
            std::printf("      not measured      %s\n", step.c_str());
        else
            std::printf("%10.1f us %5.1f %%  %s\n", time / 1000, total > 0 ? time / total * 100 : 0,
                        step.c_str());
        begin = std::min(end + 1, text.size());
    }
}

void say_where(const RunOptions& o, RunMeasurement& m) {
    const doctor::PeaksKey machine = doctor::peaks_key(o.threads);
    m.processor = machine.processor;
    m.threads = machine.threads;
    m.onednn_version = machine.onednn;
    m.version = version();
}

// A run with its model and its activations.
class Run {
public:
    explicit Run(const RunOptions& o) : o_(o) {}
    int work();

private:
    Result<void> open();
    Result<Activation> activate(unsigned index) const;
    int find_overhead();
    int measure_and_report();
    int compare();

    RunOptions o_;
    std::string path_;
    std::optional<ProfileModel> profile_;
    std::vector<Activation> activations_;
};

Result<void> Run::open() {
    if (auto chosen = choose_views(o_, path_); !chosen) return chosen;
    if (o_.profile.is_on() || o_.profile.overhead) {
        auto model = open_profile_model(path_, o_.profile);
        if (!model) return model.error();
        profile_ = std::move(*model);
    }
    for (unsigned i = 0; i < o_.activations; ++i) {
        auto activation = activate(i);
        if (!activation) return activation.error();
        activations_.push_back(std::move(*activation));
    }
    return {};
}

Result<Activation> Run::activate(unsigned index) const {
    Activation activation;
    if (profile_) activation.collector = make_collector(*profile_, o_.profile, index);
    auto runner = open_runner(path_, o_, activation.collector);
    if (!runner) return runner.error();
    activation.runner = std::move(*runner);
    auto files = input_files(o_, *activation.runner);
    if (!files) return files.error();
    if (auto good = check_written(o_, *activation.runner, *files); !good) return good.error();
    for (unsigned i = 0; i < o_.in_flight; ++i) {
        auto made = make_buffers(o_, *activation.runner, *files);
        if (!made) return made.error();
        activation.buffers.push_back(std::move(*made));
    }
    return activation;
}

int Run::find_overhead() {
    auto overhead = measure_overhead(o_, activations_[0], profile_->level);
    if (!overhead) return fail(overhead.error());
    std::fputs(overhead_text(*overhead).c_str(), stdout);
    RunMeasurement m;
    m.model = property<std::string>(*activations_[0].runner, "model_name");
    say_where(o_, m);
    if (auto written = write_json(o_.json_file, json_text(m, *overhead)); !written)
        return fail(written.error());
    const bool is_exceeded = overhead->verdict() == OverheadVerdict::exceeded;
    return is_exceeded && o_.profile.overhead_limit ? exit_too_slow : exit_done;
}

int Run::measure_and_report() {
    auto m = measure(o_, activations_);
    if (!m) return fail(m.error());
    say_where(o_, *m);
    Result<void> profiled;
    if (profile_)
        profiled = finish_profile(*profile_, o_, activations_, *m);
    else
        explain_no_profile(*activations_[0].runner, *m);
    std::fputs(console_text(*m).c_str(), stdout);
    if (o_.steps) print_steps(*activations_[0].runner);
    if (auto written = write_json(o_.json_file, json_text(*m)); !written)
        return fail(written.error());
    if (!profiled) {
        print_error(profiled.error());
        return exit_fault;
    }
    return compare();
}

int Run::compare() {
    Activation& first = activations_[0];
    if (!o_.save_dir.empty())
        if (auto saved = save_outputs(o_, path_, *first.runner, first.buffers[0].outputs); !saved)
            return fail(saved.error());
    if (o_.expect_dir.empty()) return exit_done;
    auto is_good = check_outputs(o_, path_, *first.runner, first.buffers[0].outputs);
    if (!is_good) return fail(is_good.error());
    return *is_good ? exit_done : exit_not_expected;
}

int Run::work() {
    auto path = compiled_model(o_.model);
    if (!path) {
        print_error(path.error());
        return o_.model.ends_with(".onnx") ? exit_of(path.error()) : exit_of_model(path.error());
    }
    path_ = *path;
    if (auto opened = open(); !opened) return fail(opened.error());
    return o_.profile.overhead ? find_overhead() : measure_and_report();
}

}  // namespace

int run(int argc, const char* const* argv) {
    RunOptions options;
    if (const auto status = parse_run_options(argc, argv, options)) return *status;
    print_json_alone(options.json_file);
    return Run(options).work();
}

}  // namespace vartml::tools
