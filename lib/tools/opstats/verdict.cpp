// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/verdict.h"

#include <algorithm>
#include <array>

#include "lib/tools/opstats/instances.h"
#include "lib/trace/text.h"

namespace vartml::profiling {
namespace {

constexpr size_t max_top = 5;
constexpr double mixed_margin = 0.05, cpu_limit = 0.10, conversion_limit = 0.05,
                 straggler_limit = 1.5, starved_limit = 0.7;
constexpr const char* calibrate = "compute or memory not captured: run vartml doctor --calibrate";
constexpr const char* no_peak =
    "compute or memory not captured: this processor has no peak of the type that is computed in";
constexpr const char* batch_in_groups =
    "operators of all frames not captured: the batch goes through the program in groups of frames, "
    "and they are those of the first";

// What a verdict needs besides the operators.
struct Facts {
    unsigned captured_level = 0;
    double peak_ops = 0, peak_bytes = 0;
    bool is_first_of_core = false;
    bool lacks_frames = false;  // of a batch: operators are those of the first frames alone
    uint64_t lost_records = 0;
    std::optional<HostStamps> host;  // ns
    uint64_t begin_ns = 0, end_ns = 0;
    std::optional<uint64_t> input_wait_ns;
    // Of all threads; nullopt where one does not say.
    std::optional<uint64_t> cpu_ns = 0;

    void add_cpu(uint64_t of_thread_ns) {
        if (of_thread_ns == not_captured) cpu_ns.reset();
        if (cpu_ns) *cpu_ns += of_thread_ns;
    }
};

// What is learned from the operators.
struct Times {
    double compute = 0, memory = 0, work = 0, conversion = 0, cpu = 0;
};

double us(double ns) {
    return ns / 1000;
}

bool is_captured(uint64_t stamp) {
    return stamp != 0 && stamp != not_captured;
}

// Nobody may have waited for the job, or the stages behind the device may be unknown.
std::optional<uint64_t> last_stamp(const HostStamps& s) {
    for (const size_t i : {8U, 7U, 6U})
        if (is_captured(s[i])) return s[i];
    return std::nullopt;
}

// The round trip without the wait in our own queue, at least as long as the execution.
double round_trip_ns(const Facts& facts) {
    const auto device = static_cast<double>(facts.end_ns - facts.begin_ns);
    if (!facts.host) return device;
    const HostStamps& s = *facts.host;
    const double all = static_cast<double>(*last_stamp(s)) - static_cast<double>(s[0]);
    const bool was_queued = is_captured(s[1]) && is_captured(s[2]) && s[2] > s[1];
    return std::max(all - (was_queued ? static_cast<double>(s[2] - s[1]) : 0), device);
}

// nullopt where they do not span the round trip.
std::optional<HostStamps> usable(const HostStamps& host) {
    if (!is_captured(host[0]) || !last_stamp(host)) return std::nullopt;
    return host;
}

std::string shown_name(const Op& op, const Descriptor& descriptor) {
    if (op.partition >= descriptor.partitions.size()) return op.name;
    const std::string& partition = descriptor.partitions[op.partition];
    const std::string name = op.name.empty() ? descriptor.kind(op) : op.name;
    if (name.starts_with(partition + "/")) return name;
    return partition + (name.starts_with('/') ? "" : "/") + name;
}

class Judge {
public:
    Judge(const Facts& facts, const Descriptor& descriptor, std::vector<GroupReader> readers)
        : facts_(facts), descriptor_(descriptor), readers_(std::move(readers)) {
        verdict_.device_ns = static_cast<double>(facts.end_ns - facts.begin_ns);
        verdict_.round_trip_ns = round_trip_ns(facts);
    }

    Result<Verdict> run() {
        if (has_operators())
            if (auto r = read_operators(); !r) return r.error();
        verdict_.lacks_frames = facts_.lacks_frames;
        set_shares();
        set_processor();
        verdict_.reason = reason();
        verdict_.sentence = sentence_of(verdict_);
        add_hints();
        return std::move(verdict_);
    }

    static std::string sentence_of(const Verdict& verdict);

private:
    bool has_operators() const {
        return facts_.captured_level >= level_operators && !facts_.lacks_frames;
    }
    bool has_peaks() const { return facts_.peak_ops > 0 && facts_.peak_bytes > 0; }
    double percent(double ns) const {
        return verdict_.round_trip_ns > 0 ? 100 * ns / verdict_.round_trip_ns : 0;
    }
    std::string reason() const {
        if (facts_.lacks_frames) return batch_in_groups;
        if (!has_operators())
            return "operators not captured: level " + std::to_string(facts_.captured_level) +
                   ", needs " + std::to_string(level_operators);
        if (has_peaks()) return "";
        return facts_.peak_bytes > 0 ? no_peak : calibrate;
    }

    Result<void> read_operators();
    void take(const Instance& instance, double ns);
    void set_shares();
    void set_processor();
    void add_hints();
    void add_stragglers();
    void hint(const std::string& text) { verdict_.hints.push_back(text); }

    const Facts& facts_;
    const Descriptor& descriptor_;
    std::vector<GroupReader> readers_;
    Times times_;
    Verdict verdict_;
};

Result<void> Judge::read_operators() {
    const auto sums = attribute(readers_, descriptor_, facts_.begin_ns, facts_.end_ns,
                                [this](const Instance& i, double ns) { take(i, ns); });
    if (!sums) return sums.error();
    times_.work = sums->work_ns;
    times_.conversion = sums->conversion_ns;
    return {};
}

void Judge::take(const Instance& instance, double ns) {
    const Op& op = *instance.op;
    const auto bytes = static_cast<double>(op.read_bytes) + static_cast<double>(op.write_bytes);
    const auto ops = static_cast<double>(op.ops);
    const bool is_memory = has_peaks() && bytes / facts_.peak_bytes >= ops / facts_.peak_ops;
    (is_memory ? times_.memory : times_.compute) += ns;
    if (descriptor_.engines[instance.engine] == cpu_engine) times_.cpu += ns;

    std::vector<TopOperator>& top = verdict_.top;
    if (top.size() == max_top && us(ns) <= top.back().us) return;
    const double wall = static_cast<double>(instance.end - instance.start);
    TopOperator row{shown_name(op, descriptor_), us(ns), percent(ns), "", "", 0, 0};
    if (has_peaks()) {
        row.bound = is_memory ? "memory" : "compute";
        row.unit = is_memory ? "GB/s" : "GOP/s";
        row.rate = wall > 0 ? (is_memory ? bytes : ops) / wall : 0;  // per ns is giga per s
        row.peak = (is_memory ? facts_.peak_bytes : facts_.peak_ops) / 1e9;
    }
    const auto place =
        std::ranges::find_if(top, [&](const TopOperator& other) { return other.us < row.us; });
    top.insert(place, std::move(row));
    if (top.size() > max_top) top.pop_back();
}

void Judge::set_shares() {
    Shares& s = verdict_.shares;
    const double all = verdict_.round_trip_ns, device = verdict_.device_ns;
    if (all <= 0) return;
    if (facts_.host) s.host = (all - device) / all;
    if (!has_operators()) {
        s.device = device / all;
        return;
    }
    s.overhead = (device - times_.work) / all;
    if (has_peaks()) {
        s.compute = times_.compute / all;
        s.memory = times_.memory / all;
    } else {
        s.device = times_.work / all;
    }
}

void Judge::set_processor() {
    if (facts_.lacks_frames) return;
    double busy = 0;
    for (const GroupReader& reader : readers_)
        for (const GroupReader::Busy& b : reader.busy()) busy += static_cast<double>(b.ns);
    if (facts_.cpu_ns && *facts_.cpu_ns > 0 && busy > 0)
        verdict_.processor = std::min(1., static_cast<double>(*facts_.cpu_ns) / busy);
}

std::string Judge::sentence_of(const Verdict& verdict) {
    const Shares& shares = verdict.shares;
    if (verdict.processor && *verdict.processor < starved_limit)
        return format_text(
            "starved (its threads had a processor for %.0f %% of the time that they "
            "worked: others run on this machine)",
            100 * *verdict.processor);
    struct Named {
        const char* name;
        double share;
    };
    std::vector<Named> found;
    const std::pair<const char*, const std::optional<double>&> rows[] = {
        {"compute", shares.compute}, {"memory", shares.memory}, {"overhead", shares.overhead},
        {"host", shares.host},       {"device", shares.device},
    };
    for (const auto& [name, share] : rows)
        if (share) found.push_back({name, *share});
    if (found.empty()) return "nothing was measured";
    std::ranges::stable_sort(found, std::ranges::greater{}, &Named::share);
    std::string first = found[0].name;
    // The margin would be that of a sum.
    if (shares.device) return first + " bound (" + verdict.reason + ")";
    const double margin = found.size() < 2 ? 1 : found[0].share - found[1].share;
    if (margin <= mixed_margin) first = "mixed " + first + " and " + found[1].name;
    return first + format_text(" bound (margin %.2f)", margin);
}

void Judge::add_stragglers() {
    for (const GroupReader& reader : readers_) {
        double sum = 0;
        for (const GroupReader::Busy& b : reader.busy()) sum += static_cast<double>(b.ns);
        const double mean = sum / static_cast<double>(std::max<size_t>(reader.busy().size(), 1));
        for (const GroupReader::Busy& b : reader.busy())
            if (mean > 0 && static_cast<double>(b.ns) > straggler_limit * mean)
                hint(
                    format_text("thread %u of core %u works %.2f times as long as the mean of its "
                                "group",
                                b.thread, reader.core(), static_cast<double>(b.ns) / mean));
    }
}

void Judge::add_hints() {
    const double all = verdict_.round_trip_ns;
    if (all > 0 && times_.cpu > cpu_limit * all)
        hint(
            format_text("CPU partitions take %.1f %% of the round trip; vartml inspect --summary "
                        "says why operators are there",
                        percent(times_.cpu)));
    if (all > 0 && times_.conversion > conversion_limit * all)
        hint(format_text("layout conversions take %.1f %% of the round trip",
                         percent(times_.conversion)));
    add_stragglers();
    if (facts_.is_first_of_core)
        hint("this is the first inference of a core, which finds nothing in the caches");
    if (facts_.input_wait_ns && static_cast<double>(*facts_.input_wait_ns) > verdict_.device_ns)
        hint(
            format_text("the device waited %.1f us for inputs and worked %.1f us: the application "
                        "cannot feed it",
                        us(static_cast<double>(*facts_.input_wait_ns)), us(verdict_.device_ns)));
    if (facts_.lost_records > 0)
        hint(std::to_string(facts_.lost_records) + " records were lost, so that times are missing");
}

std::string share_text(const char* name, const std::optional<double>& share) {
    return std::string(name) + (share ? format_text(" %.2f", *share) : " N/A");
}

std::optional<double> median(std::vector<double> values) {
    if (values.empty()) return std::nullopt;
    std::ranges::sort(values);
    const size_t half = values.size() / 2;
    return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

constexpr std::optional<double> Shares::* members[] = {
    &Shares::compute, &Shares::memory, &Shares::overhead, &Shares::host, &Shares::device};

}  // namespace

Result<Verdict> verdict_of(const BufferFile& file, const Descriptor& descriptor) {
    const format::Header& h = file.header();
    Facts facts;
    facts.captured_level = h.captured_level;
    facts.peak_ops = static_cast<double>(h.peak_ops_per_s);
    facts.peak_bytes = static_cast<double>(h.peak_bytes_per_s);
    facts.is_first_of_core = file.has(format::first_of_core);
    facts.lost_records = h.lost_records;
    auto lacking = file.lacks(field::later_frames);
    if (!lacking) return lacking.error();
    facts.lacks_frames = *lacking;
    if (file.host()) facts.host = usable(*file.host());
    if (facts.host)
        for (uint64_t& at : *facts.host)
            if (is_captured(at)) at = file.to_ns(at);
    bool any = false;
    for (const format::ThreadRecord& t : file.threads()) {
        if (!was_run(t)) continue;
        const uint64_t start = file.to_ns(t.start), end = file.to_ns(t.end);
        facts.begin_ns = any ? std::min(facts.begin_ns, start) : start;
        facts.end_ns = std::max(facts.end_ns, end);
        facts.add_cpu(t.cpu_ns);
        any = true;
    }
    auto r = file.each<format::PortRecord>("PORT", [&](const format::PortRecord& p) {
        if (p.port == input_port && p.wait_ticks != not_captured)
            facts.input_wait_ns =
                std::max(facts.input_wait_ns.value_or(0), file.ticks_to_ns(p.wait_ticks));
    });
    if (!r) return r.error();
    return Judge(facts, descriptor, group_readers(file, descriptor)).run();
}

Verdict verdict_of(const Capture& capture, const BufferContext& context) {
    Facts facts;
    facts.captured_level = capture.captured_level;
    facts.peak_ops = static_cast<double>(context.peak_ops_per_s);
    facts.peak_bytes = static_cast<double>(context.peak_bytes_per_s);
    facts.is_first_of_core = capture.is_first_of_core;
    facts.lost_records = capture.lost_records;
    facts.lacks_frames = std::ranges::find(capture.missing, field::later_frames,
                                           &NotCaptured::field) != capture.missing.end();
    if (capture.has_host) facts.host = usable(capture.host);
    bool any = false;
    for (const ThreadCapture& t : capture.threads) {
        if (t.end < t.start || (t.start == 0 && t.end == 0)) continue;
        facts.begin_ns = any ? std::min(facts.begin_ns, t.start) : t.start;
        facts.end_ns = std::max(facts.end_ns, t.end);
        facts.add_cpu(t.cpu_ns);
        any = true;
    }
    for (const PortWait& p : capture.ports)
        if (p.port == input_port && p.wait_ns != not_captured)
            facts.input_wait_ns = std::max(facts.input_wait_ns.value_or(0), p.wait_ns);
    // Reading from memory cannot fail.
    return *Judge(facts, *context.descriptor, group_readers(capture, *context.descriptor)).run();
}

Verdict median_of(std::span<const Verdict> verdicts) {
    Verdict result;
    if (verdicts.empty()) return result;
    double sum = 0;
    for (const auto member : members) {
        std::vector<double> values;
        for (const Verdict& v : verdicts)
            if (v.shares.*member) values.push_back(*(v.shares.*member));
        // What only some of the buffers have is not the median of them all.
        if (values.size() == verdicts.size()) result.shares.*member = median(std::move(values));
        sum += (result.shares.*member).value_or(0);
    }
    // Medians of parts need not add up to the whole.
    for (const auto member : members)
        if (auto& share = result.shares.*member; share && sum > 0) share = *share / sum;
    std::vector<double> round_trips, devices, processors;
    for (const Verdict& v : verdicts) {
        round_trips.push_back(v.round_trip_ns);
        devices.push_back(v.device_ns);
        if (v.processor) processors.push_back(*v.processor);
    }
    if (processors.size() == verdicts.size()) result.processor = median(std::move(processors));
    result.round_trip_ns = *median(round_trips);
    result.device_ns = *median(devices);
    for (const Verdict& v : verdicts)
        if (v.shares.device) result.reason = v.reason;
    result.sentence = Judge::sentence_of(result);
    return result;
}

std::vector<Note> notes_of(const Verdict& v) {
    std::vector<Note> notes = {{"verdict", v.sentence}};
    const Shares& s = v.shares;
    std::string shares = share_text("compute", s.compute) + " " + share_text("memory", s.memory) +
                         " " + share_text("overhead", s.overhead) + " " +
                         share_text("host", s.host);
    if (s.device) shares += " " + share_text("device", s.device);
    notes.push_back({"verdict-share", shares});
    for (const TopOperator& t : v.top) {
        std::string text = t.name + format_text(" %.1f us %.1f %%", t.us, t.percent);
        if (!t.bound.empty())
            text += " " + t.bound + format_text(" %.1f of %.1f ", t.rate, t.peak) + t.unit;
        notes.push_back({"verdict-top", text});
    }
    for (const std::string& h : v.hints) notes.push_back({"verdict-hint", h});
    return notes;
}

}  // namespace vartml::profiling
