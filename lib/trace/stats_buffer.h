// SPDX-License-Identifier: Apache-2.0
// Writes a capture as a raw stats buffer.
#pragma once
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <vartml/result.h>

#include "lib/trace/capture.h"
#include "lib/trace/descriptor.h"

namespace vartml::profiling::format {

// The bytes of a raw stats buffer, version 1.0: little endian, no implicit padding, every section
// at a multiple of eight bytes. Sections that a reader does not know, and bytes of a record behind
// those it knows, are skipped.

static_assert(std::endian::native == std::endian::little);

inline constexpr std::array<char, 8> magic = {'V', 'M', 'L', 'S', 'T', 'A', 'T', 'S'};
inline constexpr uint16_t version_major = 1, version_minor = 0;
inline constexpr uint32_t max_sections = 65536, max_threads = 4096;
inline constexpr uint16_t any = 0xffff;  // core or thread of a section: does not apply

enum Flag : uint32_t {
    has_operators = 1U << 0,
    has_pcycles = 1U << 1,
    free_running_pcycles = 1U << 2,
    has_pmu = 1U << 3,
    ddr_computed = 1U << 4,
    ddr_measured = 1U << 5,
    has_ports = 1U << 6,
    has_frames = 1U << 7,
    has_host = 1U << 8,
    first_of_core = 1U << 9,
    threads_pinned = 1U << 10,
};

enum ClockId : uint32_t { clock_monotonic = 1, clock_device = 256 };
enum DeviceKind : uint32_t { software_npu = 1 };

using Id = std::array<uint8_t, 16>;

struct Header {
    std::array<char, 8> magic = format::magic;
    uint16_t version_major = format::version_major, version_minor = format::version_minor;
    uint32_t header_size = 256;
    uint64_t file_size = 0;
    uint32_t header_crc = 0;  // of the header with 0 here
    uint32_t section_count = 0;
    uint64_t section_table_offset = 0;
    uint32_t section_table_crc = 0;
    uint32_t flags = 0;
    Id model_signature{}, descriptor_id{}, boot_id{};
    uint32_t program_index = 0, activation_index = 0;
    uint64_t inference_index = 0;
    uint32_t device_index = 0, device_kind = software_npu;
    uint16_t compiled_level = 0, captured_level = 0;
    uint32_t batch_size = 1, stats_batchsize = 1;
    uint32_t clock_id = clock_monotonic;
    uint64_t tick_hz = 1'000'000'000;
    uint64_t anchor0_tick = 0, anchor0_monotonic_ns = 0, anchor0_realtime_ns = 0;
    uint64_t anchor1_tick = 0, anchor1_monotonic_ns = 0;
    uint64_t anchor_uncertainty_ns = 0;
    uint64_t peak_ops_per_s = 0, peak_bytes_per_s = 0;  // 0: not calibrated
    uint64_t record_cost_ps = 0, record_count = 0, lost_records = 0;
    uint32_t pid = 0, core_count = 0, thread_count = 0;
    std::array<uint8_t, 12> zero{};
};

struct SectionEntry {
    std::array<char, 4> type{};
    uint16_t version = 1, flags = 0;
    uint64_t offset = 0, size = 0;
    uint32_t count = 0, crc = 0;
    uint16_t core = any, thread = any;
    uint32_t record_size = 0;  // 0: text
};

enum ThreadFlag : uint32_t { stamped = 1U << 0 };

struct ThreadRecord {  // THRD
    uint16_t core = 0, thread = 0, group = 0, engine = 0;
    uint32_t os_tid = 0, flags = 0;
    uint64_t start = 0, end = 0;
    uint64_t pcycles = not_captured, activate_ticks = not_captured, cpu_ns = not_captured;
    uint64_t op_count = 0;
};

using OpRecord = Stamp;          // OPTS
using PcyclesRecord = uint64_t;  // OPPC

struct PortRecord {  // PORT
    uint16_t core = 0, thread = 0, port = 0, direction = 0;
    uint32_t count = 0, zero = 0;
    uint64_t wait_ticks = 0;
};

struct BellRecord {  // BELL
    uint16_t core = 0, port = 0;
    uint32_t sequence = 0;
    uint64_t tick = 0;
};

struct SemaphoreRecord {  // SEMA
    uint16_t core = 0, thread = 0;
    uint32_t semaphore = 0;
    uint64_t start = 0, end = 0;
};

enum DdrSource : uint16_t { ddr_source_computed = 1, ddr_source_measured = 2 };

struct DdrRecord {  // DDRT
    uint16_t core = 0, source = ddr_source_computed;
    uint32_t zero = 0;
    uint64_t read_bytes = 0, write_bytes = 0;
};

struct PmuEventRecord {  // PMUD
    uint32_t perf_type = 0;
    int32_t status = 0;
    uint64_t config = 0;
    std::array<char, 48> name{};
};

struct PmuThreadRecord {  // PMUT
    uint16_t core = 0, thread = 0, events = 0, zero = 0;
    uint64_t enabled_ns = 0, running_ns = 0;
    std::array<uint64_t, max_pmu_events> values{};
};

struct HostStampsRecord {  // HOST
    HostStamps at{};
};

struct FrameEntry {  // FRAM
    uint32_t batch_slot = 0, stream_index = 0;
    uint64_t frame_number = 0;
    int64_t pts_ns = -1;
    uint64_t flow_id = 0;
};

// Nothing is padded, and the fields lie where the format says.
template <typename T>
inline constexpr bool is_plain = std::is_trivially_copyable_v<T> && std::is_standard_layout_v<T> &&
                                 std::has_unique_object_representations_v<T>;
static_assert(is_plain<Header> && sizeof(Header) == 256);
static_assert(offsetof(Header, header_size) == 12 && offsetof(Header, file_size) == 16);
static_assert(offsetof(Header, header_crc) == 24 && offsetof(Header, section_table_offset) == 32);
static_assert(offsetof(Header, section_table_crc) == 40 && offsetof(Header, flags) == 44);
static_assert(offsetof(Header, model_signature) == 48 && offsetof(Header, descriptor_id) == 64);
static_assert(offsetof(Header, boot_id) == 80 && offsetof(Header, program_index) == 96);
static_assert(offsetof(Header, inference_index) == 104 && offsetof(Header, device_index) == 112);
static_assert(offsetof(Header, compiled_level) == 120 && offsetof(Header, batch_size) == 124);
static_assert(offsetof(Header, clock_id) == 132 && offsetof(Header, tick_hz) == 136);
static_assert(offsetof(Header, anchor0_tick) == 144 && offsetof(Header, anchor1_tick) == 168);
static_assert(offsetof(Header, anchor_uncertainty_ns) == 184);
static_assert(offsetof(Header, peak_ops_per_s) == 192 && offsetof(Header, record_cost_ps) == 208);
static_assert(offsetof(Header, lost_records) == 224 && offsetof(Header, pid) == 232);
static_assert(offsetof(Header, core_count) == 236 && offsetof(Header, zero) == 244);
static_assert(is_plain<SectionEntry> && sizeof(SectionEntry) == 40);
static_assert(offsetof(SectionEntry, offset) == 8 && offsetof(SectionEntry, count) == 24);
static_assert(offsetof(SectionEntry, core) == 32 && offsetof(SectionEntry, record_size) == 36);
static_assert(is_plain<ThreadRecord> && sizeof(ThreadRecord) == 64);
static_assert(offsetof(ThreadRecord, start) == 16 && offsetof(ThreadRecord, op_count) == 56);
static_assert(is_plain<OpRecord> && sizeof(OpRecord) == 16);
static_assert(is_plain<PortRecord> && sizeof(PortRecord) == 24);
static_assert(is_plain<BellRecord> && sizeof(BellRecord) == 16);
static_assert(is_plain<SemaphoreRecord> && sizeof(SemaphoreRecord) == 24);
static_assert(is_plain<DdrRecord> && sizeof(DdrRecord) == 24);
static_assert(is_plain<PmuEventRecord> && sizeof(PmuEventRecord) == 64);
static_assert(is_plain<PmuThreadRecord> && sizeof(PmuThreadRecord) == 88);
static_assert(is_plain<HostStampsRecord> && sizeof(HostStampsRecord) == 72);
static_assert(is_plain<FrameEntry> && sizeof(FrameEntry) == 32);

}  // namespace vartml::profiling::format

namespace vartml::profiling {

// What all buffers of a run have in common.
struct BufferContext {
    const Descriptor* descriptor = nullptr;
    std::array<uint8_t, 16> descriptor_id{};  // see descriptor_id_of
    std::array<uint8_t, 16> boot_id{};
    uint64_t anchor0_realtime_ns = 0;  // CLOCK_REALTIME at Capture::begin_ns
    uint32_t pid = 0;
    uint64_t peak_ops_per_s = 0, peak_bytes_per_s = 0;  // 0: not calibrated
    bool threads_pinned = false;
};

// The first 16 bytes of SHA-256 of the entry opstatsdesc.bin.
std::array<uint8_t, 16> descriptor_id_of(std::string_view descriptor_bytes);
// Of the running kernel; zeros where it has none.
std::array<uint8_t, 16> boot_id_of_kernel();

// What the buffer says of absent fields: `capture.missing`, and a line for each section that the
// level or the compilation leaves out.
std::vector<NotCaptured> missing_of(const Capture& capture, const Descriptor& descriptor);

// Writes the file whole or not at all. Same input, same bytes. Errors: io; invalid_argument for a
// capture that the format does not hold.
Result<void> write_stats_buffer(const Capture& capture, const BufferContext& context,
                                const std::string& path);

// Names of raw stats buffers:
//     aic-profiling-program-<P>-activation-<A>-inf-<I>-<NetworkName>-aiccyclecounts.bin

inline constexpr std::string_view buffer_suffix = "-aiccyclecounts.bin";
inline constexpr const char* buffer_scheme =
    "aic-profiling-program-<P>-activation-<A>-inf-<I>-<NetworkName>-aiccyclecounts.bin";

struct BufferName {
    uint64_t program = 0, activation = 0, inference = 0;
    std::string network;  // as in the file's name
    auto operator<=>(const BufferName&) const = default;
};

// The name without the suffix; characters of `network` outside A-Za-z0-9._+ become '_'.
std::string buffer_stem(uint64_t program, uint64_t activation, uint64_t inference,
                        std::string_view network);
// nullopt unless the whole name follows the scheme.
std::optional<BufferName> parse_buffer_name(std::string_view file_name);

}  // namespace vartml::profiling
