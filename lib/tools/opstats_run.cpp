// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats_run.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cinttypes>
#include <cstdio>
#include <deque>
#include <filesystem>
#include <fstream>
#include <optional>
#include <set>
#include <tuple>

#include <vartml/log.h>

#include "lib/base/file.h"
#include "lib/model/compiled_model.h"
#include "lib/model/foreign.h"
#include "lib/model/stats_descriptor.h"
#include "lib/tools/commands.h"
#include "lib/tools/opstats/layers.h"
#include "lib/tools/opstats/page.h"
#include "lib/tools/opstats/reports.h"
#include "lib/tools/opstats/summary_build.h"
#include "lib/trace/stats_buffer.h"

namespace vartml::tools {
namespace {

namespace p = vartml::profiling;

// One buffer while the trace of its inference is being made.
struct Source {
    OpstatsFile file;
    p::BufferFile buffer;
};

class Opstats {
public:
    Opstats(const OpstatsRequest& request, OpstatsModel model)
        : request_(request), model_(std::move(model)) {}

    int run(const std::vector<OpstatsFile>& files) {
        if (request_.run_names) return run_reports(files);
        if ((request_.layers || request_.html) && !prepare_layers()) return exit_fault;
        if (request_.html) round_trips_us_ = round_trips(files);
        for (size_t i = 0; i < files.size(); ++i) {
            if (!belongs_to_group(files[i])) flush_trace();
            if (auto r = process(files[i]); !r) fail(r.error());
        }
        flush_trace();
        print_median();
        return failed_ ? exit_fault : exit_done;
    }

private:
    void fail(const Error& error) {
        print_error(error);
        failed_ = true;
    }
    static void warn(const std::string& text) { log(LogLevel::warning, "", text); }

    // `shared`: by the buffers of one inference.
    std::string output(const OpstatsFile& file, const char* ending, bool shared = false) const {
        std::string stem(last_part(file.path));
        stem.resize(stem.size() - p::buffer_suffix.size());
        if (shared) stem.resize(stem.size() - (file.name.network.size() - file.base.size()));
        return without_trailing_slashes(request_.output_dir) + "/" + stem + "." + request_.infix +
               ending;
    }
    Result<void> wrote(Result<void> done, const std::string& path) {
        if (done) std::printf("%s\n", path.c_str());
        return done;
    }

    int run_reports(const std::vector<OpstatsFile>& files);
    bool prepare_layers();
    bool belongs_to_group(const OpstatsFile& file) const;
    Result<void> process(const OpstatsFile& file);
    Result<void> report(const OpstatsFile& file, p::BufferFile& buffer);
    Result<p::LayersReport> layers_of(const OpstatsFile& file, const p::BufferFile& buffer);
    std::vector<double> round_trips(const std::vector<OpstatsFile>& files) const;
    void describe(const p::BufferFile& buffer) const;
    void note_missing_operators(const p::BufferFile& buffer) const;
    void flush_trace();
    Result<void> write_trace();
    Result<void> check_selection() const;
    void print_median() const;

    const OpstatsRequest& request_;
    OpstatsModel model_;
    p::LayerEstimates estimates_;
    std::deque<Source> group_;  // of one inference
    std::vector<p::Verdict> verdicts_;
    std::vector<double> round_trips_us_;
    bool failed_ = false;
    bool has_estimates_ = false;
};

int Opstats::run_reports(const std::vector<OpstatsFile>& files) {
    const auto print = [](const std::string& path) { std::printf("%s\n", path.c_str()); };
    std::vector<std::string> good;
    std::set<std::string> written;
    for (const OpstatsFile& file : files) {
        auto buffer = p::BufferFile::open(file.path);
        auto done =
            buffer ? p::check_match(*buffer, model_.descriptor, model_.descriptor_id, model_.path)
                   : Result<void>(buffer.error());
        if (done && request_.summary) {
            const p::RunReports one{{&file.path, 1},
                                    model_.descriptor,
                                    request_.output_dir,
                                    print,
                                    request_.trace_options.ucycle_hz};
            if (const std::string path = p::run_summary_path(one, *buffer);
                !written.insert(path).second)
                done = Error{ErrorCode::invalid_argument,
                             file.path +
                                 ": is of the same inference as another buffer, whose summary is " +
                                 path + "; give --names qaic, which tells slices apart"};
            else
                done = p::write_run_summaries(one);
        }
        if (done)
            good.push_back(file.path);
        else
            fail(done.error());
    }
    if (request_.trace)
        if (auto done = p::write_run_trace({good, model_.descriptor, request_.output_dir, print},
                                           request_.trace_options);
            !done)
            fail(done.error());
    return failed_ ? exit_fault : exit_done;
}

bool Opstats::prepare_layers() {
    std::vector<std::string> warnings;
    auto estimates = read_layer_estimates(model_, request_.estimates, warnings);
    for (const std::string& text : warnings) warn(text);
    if (!estimates && (request_.layers || !request_.estimates.empty())) {
        print_error(estimates.error());
        return false;
    }
    has_estimates_ = estimates.has_value();
    if (has_estimates_)
        estimates_ = std::move(*estimates);
    else
        warn(estimates.error().message + "; the pages have no rows of layers");
    return true;
}

bool Opstats::belongs_to_group(const OpstatsFile& file) const {
    if (group_.empty()) return true;
    const OpstatsFile& first = group_.front().file;
    return request_.merge_devices && !file.slice.empty() && !first.slice.empty() &&
           file.base == first.base && file.name.program == first.name.program &&
           file.name.activation == first.name.activation &&
           file.name.inference == first.name.inference;
}

void Opstats::describe(const p::BufferFile& buffer) const {
    const p::format::Header& h = buffer.header();
    std::fprintf(stderr,
                 "%s: %" PRIu64 " bytes, clock %u of %" PRIu64 " Hz, %" PRIu64 " records, %" PRIu64
                 " lost\n",
                 buffer.path().c_str(), h.file_size, h.clock_id, h.tick_hz, h.record_count,
                 h.lost_records);
    for (const p::Section& s : buffer.sections())
        std::fprintf(stderr, "  %s: %u records, %" PRIu64 " bytes at %" PRIu64 "\n",
                     p::section_name(s).c_str(), s.count, s.size, s.offset);
}

void Opstats::note_missing_operators(const p::BufferFile& buffer) const {
    const p::format::Header& h = buffer.header();
    if (buffer.has(p::format::has_operators) || (!request_.trace && !request_.layers)) return;
    warn(buffer.path() + ": has no operator data: compiled at level " +
         std::to_string(h.compiled_level) + ", captured at level " +
         std::to_string(h.captured_level) + "; --trace and --layers need 70");
}

Result<void> Opstats::process(const OpstatsFile& file) {
    auto buffer = p::BufferFile::open(file.path);
    if (!buffer) return buffer.error();
    if (request_.verbose) describe(*buffer);
    auto matches = p::check_match(*buffer, model_.descriptor, model_.descriptor_id, model_.path);
    if (!matches) return matches;
    note_missing_operators(*buffer);
    if (auto r = report(file, *buffer); !r) return r;
    if (!request_.trace) return {};
    if (!file.slice.empty()) buffer->close_between_reads();
    group_.push_back({file, std::move(*buffer)});
    return {};
}

Result<p::LayersReport> Opstats::layers_of(const OpstatsFile& file, const p::BufferFile& buffer) {
    if (!has_estimates_ || !buffer.has(p::format::has_operators)) return p::LayersReport();
    auto layers = p::build_layers(buffer, model_.descriptor, estimates_);
    if (!layers || !request_.layers) return layers;
    const std::string path = output(file, ".layers.csv");
    if (auto r = wrote(replace_file(path, p::csv_of(*layers), Durability::none), path); !r)
        return r.error();
    for (const std::string& line : layers->lines) std::printf("  %s\n", line.c_str());
    return layers;
}

// Of the buffers of this model, for the histogram of each page. What cannot be read is named when
// its turn comes.
std::vector<double> Opstats::round_trips(const std::vector<OpstatsFile>& files) const {
    constexpr size_t least = 3;  // fewer are no distribution
    std::vector<double> us;
    for (const OpstatsFile& file : files) {
        const auto buffer = p::BufferFile::open(file.path);
        if (!buffer || !buffer->host() ||
            !p::check_match(*buffer, model_.descriptor, model_.descriptor_id, model_.path))
            continue;
        const p::HostStamps& at = *buffer->host();
        if (at.front() != 0 && at.back() != p::not_captured && at.back() >= at.front())
            us.push_back(static_cast<double>(buffer->ticks_to_ns(at.back() - at.front())) / 1000);
    }
    return us.size() < least ? std::vector<double>() : us;
}

Result<void> Opstats::report(const OpstatsFile& file, p::BufferFile& buffer) {
    if (!request_.summary && !request_.html && !request_.layers) return {};
    const auto verdict = p::verdict_of(buffer, model_.descriptor);
    if (!verdict) return verdict.error();
    verdicts_.push_back(*verdict);
    const auto summary =
        p::build_summary(buffer, model_.descriptor, *verdict, request_.trace_options.ucycle_hz);
    if (!summary) return summary.error();
    if (request_.summary) {
        const std::string path = output(file, ".summary.txt");
        if (auto r = wrote(replace_file(path, p::text_of(*summary), Durability::none), path); !r)
            return r;
    }
    const auto layers = layers_of(file, buffer);
    if (!layers) return layers.error();
    if (!request_.html) return {};
    const std::string path = output(file, ".html");
    return wrote(p::write_page(buffer, model_.descriptor,
                               {*summary, *verdict, layers->rows, round_trips_us_}, path),
                 path);
}

void Opstats::flush_trace() {
    if (!group_.empty())
        if (auto r = write_trace(); !r) fail(r.error());
    group_.clear();
}

std::string listed(const std::set<unsigned>& numbers) {
    std::string text;
    for (const unsigned n : numbers) text += (text.empty() ? "" : ", ") + std::to_string(n);
    return text;
}

Result<void> Opstats::check_selection() const {
    std::set<unsigned> cores, devices;
    for (const Source& source : group_) {
        devices.insert(source.buffer.header().device_index);
        for (const auto& t : source.buffer.threads()) cores.insert(t.core);
    }
    const p::TraceOptions& o = request_.trace_options;
    const struct {
        const char *flag, *what;
        const std::vector<unsigned>& wanted;
        const std::set<unsigned>& there;
    } rows[] = {{"--select-cores", "cores", o.cores, cores},
                {"--select-devices", "devices", o.devices, devices}};
    const std::string& path = group_.front().file.path;
    for (const auto& row : rows) {
        if (row.wanted.empty()) continue;
        size_t found = 0;
        for (const unsigned n : row.wanted) {
            found += row.there.count(n);
            if (row.there.count(n) == 0)
                warn(path + ": " + row.flag + " names " + std::to_string(n) + "; it has the " +
                     row.what + " " + listed(row.there));
        }
        if (found == 0)
            return Error{ErrorCode::not_found,
                         path + ": none of the " + std::string(row.what) + " of " + row.flag +
                             " is in it, so that there is no trace; it has " + listed(row.there)};
    }
    return {};
}

Result<void> Opstats::write_trace() {
    if (auto r = check_selection(); !r) return r;
    const OpstatsFile& first = group_.front().file;
    const bool is_merged = request_.merge_devices && !first.slice.empty();
    std::vector<p::TraceSource> sources;
    for (Source& source : group_)
        sources.push_back({&source.buffer, &model_.descriptor, source.file.slice});
    const std::string path = output(first, ".trace.json", is_merged);
    return wrote(p::write_trace(sources, request_.trace_options, path), path);
}

void Opstats::print_median() const {
    if (verdicts_.empty()) return;
    const bool is_median = verdicts_.size() > 1;
    const p::Verdict shown = is_median ? p::median_of(verdicts_) : verdicts_.front();
    if (is_median) std::printf("median of %zu inferences:\n", verdicts_.size());
    for (const p::Note& note : p::notes_of(shown)) std::printf("%s\n", p::text_of(note).c_str());
}

}  // namespace

int run_opstats(const OpstatsRequest& request) {
    std::error_code ignored;
    if (!std::filesystem::is_directory(request.output_dir, ignored) ||
        ::access(request.output_dir.c_str(), W_OK | X_OK) != 0) {
        print_error({ErrorCode::io, request.output_dir +
                                        ": --output-dir must be a folder that is there and can be "
                                        "written"});
        return exit_fault;
    }
    auto model = open_opstats_model(request.model);
    if (!model) {
        print_error(model.error());
        return exit_fault;
    }
    const auto files = find_opstats_files(request.input_dir);
    if (!files) {
        print_error(files.error());
        return exit_fault;
    }
    return Opstats(request, std::move(*model)).run(*files);
}

void set_slice(OpstatsFile& file) {
    const std::string& name = file.name.network;
    constexpr std::string_view word = "_slice";
    file.base = name;
    const size_t at = name.rfind(word);
    if (at == name.npos || at == 0) return;
    const std::string_view digits = std::string_view(name).substr(at + word.size());
    const bool all = !digits.empty() && digits.find_first_not_of("0123456789") == digits.npos;
    if (!all) return;
    file.base = name.substr(0, at);
    file.slice = name.substr(at + 1);
}

Result<std::vector<OpstatsFile>> find_opstats_files(const std::string& folder) {
    namespace fs = std::filesystem;
    std::error_code error;
    std::vector<OpstatsFile> files;
    size_t seen = 0;
    for (const auto& entry : fs::directory_iterator(folder, error)) {
        std::error_code ignored;
        if (!entry.is_regular_file(ignored)) continue;
        ++seen;
        const std::string path = entry.path();
        auto name = profiling::parse_buffer_name(last_part(path));
        if (!name) continue;
        OpstatsFile& file = files.emplace_back();
        file.path = path;
        file.name = std::move(*name);
        set_slice(file);
    }
    if (error) return system_error(folder, "open the folder", error.value());
    if (files.empty())
        return Error{ErrorCode::not_found,
                     folder + ": holds no raw stats buffer named " + profiling::buffer_scheme +
                         " among " + std::to_string(seen) +
                         " files; collect some with vartml run --profiling-type=raw_device_stats"};
    std::ranges::sort(files, {}, [](const OpstatsFile& f) {
        return std::tie(f.name.program, f.name.activation, f.name.inference, f.name.network);
    });
    return files;
}

namespace {

namespace fs = std::filesystem;

constexpr size_t max_descriptor_bytes = size_t{256} << 20, max_estimate_bytes = size_t{64} << 20;
constexpr std::string_view descriptor_identifier = "VMOD";

std::string first_bytes(const std::string& path) {
    char bytes[16] = {};
    std::ifstream(path, std::ios::binary).read(bytes, sizeof bytes);
    return {bytes, sizeof bytes};
}

bool is_descriptor(const std::string& path) {
    return std::string_view(first_bytes(path)).substr(4).starts_with(descriptor_identifier);
}

// What a folder may hold under any name.
bool is_container(const fs::directory_entry& entry) {
    std::error_code ignored;
    if (!entry.is_regular_file(ignored)) return false;
    const std::string path = entry.path();
    return artifact::looks_like_rai(as_bytes(first_bytes(path))) || artifact::is_gzip(path);
}

// A directory container is itself; else the one model that a folder holds.
Result<std::string> model_in(const std::string& folder) {
    std::error_code error;
    if (fs::exists(folder + "/vaiml_par_0", error)) return folder;
    std::vector<std::string> found;
    for (const auto& entry : fs::directory_iterator(folder, error))
        if (is_container(entry)) found.push_back(entry.path());
    if (error) return system_error(folder, "open the folder", error.value());
    std::ranges::sort(found);
    if (found.size() == 1) return found.front();
    if (found.empty())
        return Error{ErrorCode::not_found, folder +
                                               ": holds no compiled model (a .rai, a .tar.gz "
                                               "or a folder vaiml_par_0)"};
    return Error{ErrorCode::invalid_argument, folder + ": holds more than one compiled model, " +
                                                  std::string(last_part(found[0])) + " and " +
                                                  std::string(last_part(found[1])) +
                                                  "; name the file"};
}

Result<OpstatsModel> open_descriptor(const std::string& path) {
    const auto bytes = read_file(path, max_descriptor_bytes);
    if (!bytes) return bytes.error();
    auto descriptor = artifact::read_descriptor(as_bytes(*bytes), path);
    if (!descriptor) return descriptor.error();
    return OpstatsModel{path, std::move(*descriptor), profiling::descriptor_id_of(*bytes), {}};
}

bool is_same_text(const OpstatsModel& model, size_t index, const std::string& text) {
    return index < model.estimates.size() && model.estimates[index] == text;
}

}  // namespace

Result<OpstatsModel> open_opstats_model(const std::string& path) {
    std::error_code ignored;
    std::string file = without_trailing_slashes(path);
    if (fs::is_directory(file, ignored)) {
        const auto found = model_in(file);
        if (!found) return found.error();
        file = *found;
    } else if (is_descriptor(file)) {
        return open_descriptor(file);
    }
    const auto model = artifact::read(file, {.programs = false});
    if (!model) return model.error();
    auto descriptor = artifact::descriptor_of(*model, file);
    if (!descriptor) return descriptor.error();
    const std::string& bytes = *model->find_file(profiling::descriptor_entry);
    OpstatsModel out{file, std::move(*descriptor), profiling::descriptor_id_of(bytes), {}};
    for (const std::string& name : out.descriptor.estimate_entries)
        if (const std::string* text = model->find_file(name)) out.estimates.push_back(*text);
    return out;
}

Result<profiling::LayerEstimates> read_layer_estimates(const OpstatsModel& model,
                                                       const std::vector<std::string>& files,
                                                       std::vector<std::string>& warnings) {
    profiling::LayerEstimates out;
    const bool is_auto = files.empty() || (files.size() == 1 && files[0] == "auto");
    if (profiling::npu_partitions(model.descriptor).empty())
        return Error{ErrorCode::invalid_argument,
                     model.path +
                         ": has no NPU partition, of which alone there are estimates; "
                         "leave out --layers"};
    if (is_auto && model.estimates.empty())
        return Error{ErrorCode::not_found, model.path +
                                               ": holds no estimate; give the *_mla_stats.yaml of "
                                               "each NPU partition with --estimate"};
    bool is_own = true;
    const size_t count = is_auto ? model.estimates.size() : files.size();
    for (size_t i = 0; i < count; ++i) {
        std::string text, where;
        if (is_auto) {
            text = model.estimates[i];
            where = model.path + ": " + model.descriptor.estimate_entries[i];
        } else {
            auto read = read_file(files[i], max_estimate_bytes);
            if (!read) return read.error();
            text = std::move(*read);
            where = files[i];
            is_own = is_own && is_same_text(model, i, text);
        }
        auto estimate = profiling::read_estimate(text, where);
        if (!estimate) return estimate.error();
        warnings.insert(warnings.end(), estimate->warnings.begin(), estimate->warnings.end());
        out.of_partitions.push_back(std::move(*estimate));
    }
    if (is_own) out.clock_hz = model.descriptor.nominal_clock_hz;
    return out;
}

}  // namespace vartml::tools
