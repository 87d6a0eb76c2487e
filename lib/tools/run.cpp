// SPDX-License-Identifier: Apache-2.0
// `vartml run`: runs a compiled model on given or fixed pseudo-random data, measures, compares.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include <vartml/version.h>

#include "lib/tools/commands.h"
#include "lib/tools/doctor/doctor.h"
#include "lib/tools/run_measure.h"
#include "lib/tools/run_options.h"
#include "lib/tools/run_overhead.h"
#include "lib/tools/run_profile.h"
#include "lib/tools/run_report.h"
#include "lib/tools/run_tensors.h"

namespace vartml::tools {
namespace {

int fail(const Error& error) {
    print_error(error);
    return exit_of_model(error);
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

Result<void> write_json(const std::string& path, const std::string& text) {
    if (path.empty()) return {};
    std::ofstream file(path);
    file << text;
    if (!file.flush()) return Error{ErrorCode::io, "--json: cannot write " + path};
    return {};
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
    if (o_.expect_dir.empty()) return exit_done;
    Activation& first = activations_[0];
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
    return Run(options).work();
}

}  // namespace vartml::tools
