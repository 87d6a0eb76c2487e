// SPDX-License-Identifier: Apache-2.0
#include "lib/trace/stats_buffer.h"

#include <algorithm>
#include <charconv>
#include <cstring>
#include <limits>
#include <span>

#include "lib/base/checksum.h"
#include "lib/base/file.h"
#include "lib/base/sha256.h"
#include "lib/trace/part_file.h"

namespace vartml::profiling {
namespace {

using format::Header;
using format::SectionEntry;

// A section before it has a place. `bytes` points into the capture or into `own`.
struct Piece {
    SectionEntry entry;
    std::string own;
    Bytes bytes;
};

class Pieces {
public:
    void add_text(const char* type, std::string text, size_t lines) {
        Piece& piece = add(type, format::any, format::any, lines, 0);
        piece.own = std::move(text);
    }
    template <typename T>
    void add_own(const char* type, const std::vector<T>& records) {
        if (records.empty()) return;
        Piece& piece = add(type, format::any, format::any, records.size(), sizeof(T));
        piece.own = as_text(std::as_bytes(std::span(records)));
    }
    // Borrows the records.
    void add_operators(const char* type, const ThreadCapture& thread, Bytes bytes,
                       size_t record_size) {
        if (bytes.empty()) return;
        add(type, thread.core, thread.thread, bytes.size() / record_size, record_size).bytes =
            bytes;
    }
    // Gives every section its place behind the header and the table; the size of the file.
    uint64_t place() {
        uint64_t at = sizeof(Header) + pieces_.size() * sizeof(SectionEntry);
        for (Piece& piece : pieces_) {
            if (!piece.own.empty()) piece.bytes = as_bytes(piece.own);
            at = rounded(at);
            piece.entry.offset = at;
            piece.entry.size = piece.bytes.size();
            piece.entry.crc = crc32(piece.bytes);
            at += piece.entry.size;
        }
        return at;
    }
    static uint64_t rounded(uint64_t at) { return (at + 7) / 8 * 8; }
    const std::vector<Piece>& all() const { return pieces_; }

private:
    Piece& add(const char* type, uint16_t core, uint16_t thread, size_t count, size_t record_size) {
        Piece& piece = pieces_.emplace_back();
        std::memcpy(piece.entry.type.data(), type, piece.entry.type.size());
        piece.entry.core = core;
        piece.entry.thread = thread;
        piece.entry.count = static_cast<uint32_t>(count);
        piece.entry.record_size = static_cast<uint32_t>(record_size);
        return piece;
    }
    std::vector<Piece> pieces_;
};

// Captures come from several threads of the runtime; files do not depend on their order.
std::vector<const ThreadCapture*> sorted_threads(const Capture& capture) {
    std::vector<const ThreadCapture*> threads;
    for (const ThreadCapture& thread : capture.threads) threads.push_back(&thread);
    std::ranges::stable_sort(threads, {},
                             [](const ThreadCapture* t) { return std::pair(t->core, t->thread); });
    return threads;
}

std::string clean(std::string_view text) {
    std::string line(text);
    std::ranges::replace_if(
        line, [](char c) { return c == '\t' || c == '\n' || c == '\r' || c == '\0'; }, ' ');
    return line;
}

void add_threads(const std::vector<const ThreadCapture*>& threads, Pieces& pieces) {
    std::vector<format::ThreadRecord> records;
    for (const ThreadCapture* t : threads) {
        format::ThreadRecord& r = records.emplace_back();
        r.core = t->core;
        r.thread = t->thread;
        r.group = t->group;
        r.engine = t->engine;
        r.os_tid = t->os_tid;
        r.flags = t->is_stamped ? format::stamped : 0U;
        r.start = t->start;
        r.end = t->end;
        r.pcycles = t->pcycles;
        r.activate_ticks = t->activate_ns;
        r.cpu_ns = t->cpu_ns;
        r.op_count = t->ops.size();
    }
    pieces.add_own("THRD", records);
}

void add_operators(const ThreadCapture& t, Pieces& pieces) {
    pieces.add_operators("OPTS", t, std::as_bytes(std::span(t.ops)), sizeof(format::OpRecord));
    pieces.add_operators("OPPC", t, std::as_bytes(std::span(t.pcycles_of_ops)),
                         sizeof(format::PcyclesRecord));
}

// The counters in use alone: the capture keeps room for the largest number of them.
void add_pmu_of_operators(const ThreadCapture& t, size_t events, std::vector<uint64_t>& room,
                          Pieces& pieces) {
    room.clear();
    for (const auto& values : t.pmu_of_ops)
        room.insert(room.end(), values.begin(), values.begin() + static_cast<ptrdiff_t>(events));
    if (events == 0) return;
    pieces.add_operators("OPMU", t, std::as_bytes(std::span(room)), events * sizeof(uint64_t));
}

void add_ports(const Capture& capture, Pieces& pieces) {
    std::vector<format::PortRecord> ports;
    for (const PortWait& p : capture.ports)
        ports.push_back(
            {p.core, p.thread, p.port, static_cast<uint16_t>(p.is_output), p.count, 0, p.wait_ns});
    pieces.add_own("PORT", ports);
    std::vector<format::BellRecord> bells;
    for (const Doorbell& b : capture.doorbells) bells.push_back({b.core, b.port, b.sequence, b.at});
    pieces.add_own("BELL", bells);
    std::vector<format::SemaphoreRecord> semaphores;
    for (const Semaphore& s : capture.semaphores)
        semaphores.push_back({s.core, s.thread, s.semaphore, s.start, s.end});
    pieces.add_own("SEMA", semaphores);
}

void add_counters(const Capture& capture, const std::vector<const ThreadCapture*>& threads,
                  Pieces& pieces) {
    std::vector<format::DdrRecord> traffic;
    for (const MemoryTraffic& m : capture.traffic)
        traffic.push_back(
            {m.core, m.is_measured ? format::ddr_source_measured : format::ddr_source_computed, 0,
             m.read_bytes, m.write_bytes});
    pieces.add_own("DDRT", traffic);
    std::vector<format::PmuEventRecord> events;
    for (const PmuEvent& e : capture.pmu_events) {
        auto& record = events.emplace_back();
        record.perf_type = e.perf_type;
        record.status = e.status;
        record.config = e.config;
        std::memcpy(record.name.data(), e.name.data(),
                    std::min(e.name.size(), record.name.size() - 1));
    }
    pieces.add_own("PMUD", events);
    if (events.empty()) return;
    std::vector<format::PmuThreadRecord> counts;
    for (const ThreadCapture* t : threads) {
        counts.push_back({t->core, t->thread, static_cast<uint16_t>(events.size()), 0,
                          t->pmu.enabled_ns, t->pmu.running_ns, t->pmu.values});
        for (size_t i = events.size(); i < max_pmu_events; ++i)
            counts.back().values[i] = not_captured;
    }
    pieces.add_own("PMUT", counts);
}

void add_jobs(const Capture& capture, Pieces& pieces) {
    if (capture.has_host)
        pieces.add_own("HOST", std::vector<format::HostStampsRecord>{{capture.host}});
    std::vector<format::FrameEntry> frames;
    for (const FrameRecord& f : capture.frames)
        frames.push_back({f.batch_slot, f.stream_index, f.frame_number, f.pts_ns, f.flow_id});
    pieces.add_own("FRAM", frames);
    std::string streams;
    for (const StreamName& s : capture.streams)
        streams += std::to_string(s.index) + '\t' + clean(s.id) + '\n';
    if (!streams.empty()) pieces.add_text("STRM", std::move(streams), capture.streams.size());
}

void add_missing(const Capture& capture, const Descriptor& descriptor, Pieces& pieces) {
    const std::vector<NotCaptured> missing = missing_of(capture, descriptor);
    std::string lines;
    for (const NotCaptured& m : missing) lines += clean(m.field) + '\t' + clean(m.reason) + '\n';
    if (!lines.empty()) pieces.add_text("NOCA", std::move(lines), missing.size());
}

uint32_t flags_of(const Capture& capture, const BufferContext& context) {
    const auto any_thread = [&](auto wanted) {
        return std::ranges::any_of(capture.threads, wanted);
    };
    const auto any_traffic = [&](bool measured) {
        return std::ranges::any_of(
            capture.traffic, [&](const MemoryTraffic& m) { return m.is_measured == measured; });
    };
    const struct {
        bool set;
        format::Flag flag;
    } rows[] = {
        {any_thread([](const ThreadCapture& t) { return !t.ops.empty(); }), format::has_operators},
        {any_thread([](const ThreadCapture& t) { return t.pcycles != not_captured; }),
         format::has_pcycles},
        {!capture.pmu_events.empty(), format::has_pmu},
        {any_traffic(false), format::ddr_computed},
        {any_traffic(true), format::ddr_measured},
        {!capture.ports.empty(), format::has_ports},
        {!capture.frames.empty(), format::has_frames},
        {capture.has_host, format::has_host},
        {capture.is_first_of_core, format::first_of_core},
        {context.threads_pinned, format::threads_pinned},
    };
    uint32_t flags = 0;
    for (const auto& row : rows)
        if (row.set) flags |= row.flag;
    return flags;
}

Header header_of(const Capture& capture, const BufferContext& context) {
    const Descriptor& d = *context.descriptor;
    Header h;
    h.flags = flags_of(capture, context);
    h.model_signature = d.model_signature;
    h.descriptor_id = context.descriptor_id;
    h.boot_id = context.boot_id;
    h.program_index = capture.program_index;
    h.activation_index = capture.activation_index;
    h.inference_index = capture.inference_index;
    h.device_index = capture.device_index;
    h.compiled_level = d.compiled_level;
    h.captured_level = capture.captured_level;
    h.batch_size = d.batch;
    h.stats_batchsize = d.stats_batchsize;
    h.anchor0_tick = h.anchor0_monotonic_ns = capture.begin_ns;
    h.anchor0_realtime_ns = context.anchor0_realtime_ns;
    h.anchor1_tick = h.anchor1_monotonic_ns = capture.end_ns;
    h.peak_ops_per_s = context.peak_ops_per_s;
    h.peak_bytes_per_s = context.peak_bytes_per_s;
    h.record_cost_ps = capture.record_cost_ps;
    h.record_count = capture.record_count;
    h.lost_records = capture.lost_records;
    h.pid = context.pid;
    h.core_count = capture.core_count;
    h.thread_count = static_cast<uint32_t>(capture.threads.size());
    return h;
}

Result<void> check(const Capture& capture, const std::string& path) {
    const auto fault = [&](const std::string& what) {
        return Error{ErrorCode::invalid_argument, path + ": the capture has " + what};
    };
    if (capture.threads.empty()) return fault("no thread");
    if (capture.threads.size() > format::max_threads)
        return fault(std::to_string(capture.threads.size()) + " threads, the format holds " +
                     std::to_string(format::max_threads));
    if (capture.pmu_events.size() > max_pmu_events)
        return fault(std::to_string(capture.pmu_events.size()) + " counters, the format holds " +
                     std::to_string(max_pmu_events));
    for (const ThreadCapture& t : capture.threads) {
        const bool fits = (t.pcycles_of_ops.empty() || t.pcycles_of_ops.size() == t.ops.size()) &&
                          (t.pmu_of_ops.empty() || t.pmu_of_ops.size() == t.ops.size());
        if (!fits || t.ops.size() > std::numeric_limits<uint32_t>::max())
            return fault("counters of thread " + std::to_string(t.thread) +
                         " that do not belong to its operators");
    }
    return {};
}

Result<void> write(const Header& header, const std::vector<Piece>& pieces,
                   std::span<const SectionEntry> table, const std::string& path) {
    auto file = PartFile::create(path);
    if (!file) return file.error();
    file->write(std::as_bytes(std::span(&header, 1)));
    file->write(std::as_bytes(table));
    uint64_t at = sizeof(Header) + table.size_bytes();
    for (const Piece& piece : pieces) {
        file->write(std::string(piece.entry.offset - at, '\0'));
        file->write(piece.bytes);
        at = piece.entry.offset + piece.entry.size;
    }
    return file->commit();
}

}  // namespace

std::array<uint8_t, 16> descriptor_id_of(std::string_view descriptor_bytes) {
    const Sha256::Digest digest = sha256(as_bytes(descriptor_bytes));
    std::array<uint8_t, 16> id;
    std::copy_n(digest.begin(), id.size(), id.begin());
    return id;
}

std::array<uint8_t, 16> boot_id_of_kernel() {
    std::array<uint8_t, 16> id{};
    const auto text = read_file("/proc/sys/kernel/random/boot_id", 64);
    if (!text) return id;
    size_t nibble = 0;
    for (const char c : *text) {
        const int value = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
        if (value < 0) continue;
        if (nibble >= 2 * id.size()) return {};
        id[nibble / 2] = static_cast<uint8_t>(id[nibble / 2] << 4 | value);
        ++nibble;
    }
    return id;
}

std::vector<NotCaptured> missing_of(const Capture& capture, const Descriptor& descriptor) {
    std::vector<NotCaptured> missing = capture.missing;
    const auto say = [&](bool absent, const char* name, const std::string& reason) {
        const bool said = std::ranges::any_of(
            capture.missing, [&](const NotCaptured& m) { return m.field == name; });
        if (absent && !said) missing.push_back({name, reason});
    };
    const auto level = [&](unsigned wanted) {
        const std::string at = "captured at level " + std::to_string(capture.captured_level);
        return descriptor.compiled_level < wanted
                   ? at + "; compile with --stats-level=" + std::to_string(wanted)
                   : at + "; run with --profiling-level=" + std::to_string(wanted);
    };
    const auto below = [&](unsigned wanted) { return capture.captured_level < wanted; };
    const auto none = [&](auto member) {
        return std::ranges::all_of(capture.threads,
                                   [&](const ThreadCapture& t) { return (t.*member).empty(); });
    };
    say(std::ranges::all_of(capture.threads,
                            [](const ThreadCapture& t) { return t.pcycles == not_captured; }),
        field::pcycles, "no thread has a counter of cycles");
    say(capture.traffic.empty(), field::ddr,
        descriptor.ddr_stats ? "the runtime gave none" : "compiled without --ddr-stats");
    say(capture.pmu_events.empty(), field::pmu,
        descriptor.pmu.empty() ? "compiled without --pmu-recipe and --pmu-events"
                               : "the runtime gave none");
    say(below(level_ports), field::port_waits, level(level_ports));
    say(below(level_ports), field::doorbells, level(level_ports));
    say(below(level_ports), field::hand_overs, level(level_ports));
    say(below(level_operators), field::operators, level(level_operators));
    say(!below(level_operators) && none(&ThreadCapture::pcycles_of_ops),
        field::pcycles_of_operators, "no thread has a counter of cycles");
    say(!capture.pmu_events.empty() && below(level_pmu_per_operator), field::pmu_of_operators,
        level(level_pmu_per_operator));
    say(!capture.has_host, field::host_stamps, "the runtime gave none");
    say(capture.frames.empty(), field::frames, "the application gave no frame keys");
    return missing;
}

Result<void> write_stats_buffer(const Capture& capture, const BufferContext& context,
                                const std::string& path) {
    if (auto good = check(capture, path); !good) return good;
    const std::vector<const ThreadCapture*> threads = sorted_threads(capture);
    Pieces pieces;
    pieces.add_text("NETW", context.descriptor->network, 1);
    add_threads(threads, pieces);
    const size_t events = capture.pmu_events.size();
    std::vector<std::vector<uint64_t>> rooms(threads.size());
    for (size_t i = 0; i < threads.size(); ++i) {
        add_operators(*threads[i], pieces);
        add_pmu_of_operators(*threads[i], events, rooms[i], pieces);
    }
    add_ports(capture, pieces);
    add_counters(capture, threads, pieces);
    add_jobs(capture, pieces);
    add_missing(capture, *context.descriptor, pieces);

    Header header = header_of(capture, context);
    header.file_size = pieces.place();
    std::vector<SectionEntry> table;
    for (const Piece& piece : pieces.all()) table.push_back(piece.entry);
    header.section_count = static_cast<uint32_t>(table.size());
    header.section_table_offset = sizeof(Header);
    header.section_table_crc = crc32(std::as_bytes(std::span(table)));
    header.header_crc = crc32(std::as_bytes(std::span(&header, 1)));
    return write(header, pieces.all(), table, path);
}

namespace {

bool is_kept(char c) {
    return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '+';
}

bool take(std::string_view& rest, std::string_view word) {
    if (!rest.starts_with(word)) return false;
    rest.remove_prefix(word.size());
    return true;
}

bool take(std::string_view& rest, uint64_t& number) {
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc()) return false;
    rest.remove_prefix(static_cast<size_t>(end - rest.data()));
    return true;
}

}  // namespace

std::string buffer_stem(uint64_t program, uint64_t activation, uint64_t inference,
                        std::string_view network) {
    std::string stem = "aic-profiling-program-" + std::to_string(program) + "-activation-" +
                       std::to_string(activation) + "-inf-" + std::to_string(inference) + "-";
    for (const char c : network) stem += is_kept(c) ? c : '_';
    return stem;
}

std::optional<BufferName> parse_buffer_name(std::string_view file_name) {
    BufferName name;
    std::string_view rest = file_name;
    if (!rest.ends_with(buffer_suffix)) return std::nullopt;
    rest.remove_suffix(buffer_suffix.size());
    const bool matches = take(rest, "aic-profiling-program-") && take(rest, name.program) &&
                         take(rest, "-activation-") && take(rest, name.activation) &&
                         take(rest, "-inf-") && take(rest, name.inference) && take(rest, "-") &&
                         !rest.empty();
    if (!matches) return std::nullopt;
    name.network = rest;
    return name;
}

}  // namespace vartml::profiling
