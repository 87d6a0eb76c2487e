// SPDX-License-Identifier: Apache-2.0
// Publisher: what was found on frames as JSON lines, to standard output, a file, a socket or a
// broker.
#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

namespace vartml {

/// A part of one of the lists of a FrameRecord.
struct RecordRange {
    uint32_t first = 0, count = 0;
};
/// A class with its score. The texts must outlive the record.
struct RecordClass {
    std::string_view label;
    float score = 0;
    std::string_view model;  ///< which model says so; "" = not known
};
/// A line of text that was read, with its score.
struct RecordText {
    RecordRange chars;  ///< in FrameRecord::chars, UTF-8
    float score = 0;
};
struct RecordPoint {
    float x = 0, y = 0, score = 0;
};
/// A mask as lengths of runs, row by row. Of an object: pixels outside and inside by turns, outside
/// first. Of the whole picture: region number, length, region number, length …
struct RecordMask {
    std::array<int, 4> box{};  ///< x, y, width, height of what it covers, frame pixels
    uint32_t width = 0, height = 0;
    RecordRange runs;     ///< in FrameRecord::runs
    RecordRange labels;   ///< in FrameRecord::labels, score unused: by region, of the whole picture
    RecordRange regions;  ///< in FrameRecord::runs: the number of each label's region
};
/// A zone or line with its counts so far.
struct RecordZone {
    std::string_view name;  ///< must outlive the record, as those below
    bool line = false;
    uint64_t inside = 0, in = 0, out = 0;  ///< inside and longest: of zones alone
    uint64_t longest_ns = 0;
};
/// What a track does in a zone or on a line.
struct RecordVisit {
    std::string_view zone, event, label;  ///< event: inside, enter, leave, in, out; label: or ""
    uint64_t track = 0, dwell_ns = 0;
};
struct RecordObject {
    uint32_t id = 0;         ///< within the frame
    std::string_view label;  ///< must outlive the record
    std::optional<int32_t> class_id;
    std::string_view model;  ///< which model found it, must outlive the record; "" = not known
    float score = 0;
    std::array<int, 4> box{};  ///< x, y, width, height, frame pixels, before the turn
    float angle = 0;           ///< radians, clockwise about the centre; 0 = upright
    std::optional<uint64_t> track;
    std::optional<uint32_t> parent;  ///< id of the object that it was found in
    RecordRange attributes;          ///< in FrameRecord::labels
    RecordRange keypoints;           ///< in FrameRecord::points
    RecordRange embedding;           ///< in FrameRecord::numbers
    std::optional<RecordMask> mask;
    std::optional<RecordText> text;
    RecordRange visits;  ///< in FrameRecord::visits: the zones that it is in
};
/// How results came about.
struct RecordInference {
    std::string infer, model, hash;
    unsigned epoch = 0;
    std::string_view status;             ///< of static storage
    std::optional<uint64_t> result_seq;  ///< of a carried result: frame_seq of its frame
    uint64_t age_us = 0;                 ///< the same: how much older that frame is
    std::array<int, 4> region{};
    uint64_t pre_us = 0, wait_us = 0, run_us = 0, total_us = 0;
    unsigned batch_fill = 0;
};

/// What is said of one frame. Members without value are left out of the JSON line.
struct FrameRecord {
    uint64_t seq = 0;    ///< set by Publisher::put
    uint64_t epoch = 0;  ///< of the stream's owner, greater for each that follows; 0 = not known
    std::string stream;
    uint64_t frame_seq = 0;
    std::optional<uint64_t> pts_ns, running_ns;
    std::optional<int64_t> utc_ns;  ///< since 1970
    unsigned width = 0, height = 0;
    bool timings = true;
    std::vector<RecordInference> inferences;
    size_t num_inferences = 0;  ///< of the list: strings behind keep their memory
    std::vector<RecordObject> objects;
    std::vector<RecordClass> classes;     ///< of the whole picture
    std::vector<RecordMask> masks;        ///< the same
    std::vector<RecordRange> keypoints;   ///< the same
    std::vector<RecordRange> embeddings;  ///< the same
    std::vector<RecordText> texts;        ///< the same
    std::vector<RecordZone> zones;        ///< all of the picture
    std::vector<RecordVisit> happened;    ///< on this frame: visits that begin or end, crossings
    std::vector<RecordVisit> visits;      ///< a list that ranges are of
    std::vector<RecordClass> labels;      ///< lists that ranges are of
    std::vector<RecordPoint> points;
    std::vector<uint32_t> runs;
    std::vector<float> numbers;
    std::string chars;

    /// Empties the record and keeps its memory.
    void clear();
    /// Whether there is nothing that was found.
    bool empty() const;
};

/// One line of output: a frame, or a gap that stands for frames that were lost.
struct PublishLine {
    std::string text;           ///< JSON in UTF-8 and a newline
    std::string stream, model;  ///< for topics
    std::string run;
    uint64_t first = 0, last = 0, count = 0;  ///< numbers of a gap; of a frame all the same, 1
    uint64_t epoch = 0;                       ///< of a gap: as FrameRecord::epoch
    bool gap = false;
};

/// `{"schema":"vartml.frame/1",…}`; numbers do not depend on the locale, NaN and infinity are null.
void format_frame(const FrameRecord& record, std::string_view run, PublishLine& line);
/// `{"schema":"vartml.gap/1",…}` from the line's other members.
void format_gap(PublishLine& line);
/// A record's text as ONVIF's `tt:MetadataStream` with one `tt:Frame`, XML on a line, in the
/// standard's coordinates; without a frame where it is none, such as a gap.
std::string onvif_line(std::string_view record);
/// The other members from the text; nothing where it is no line of a publisher.
std::optional<PublishLine> parse_line(std::string_view text);

/// Where lines go. Used by one thread, the publisher's; nothing waits for the receiver.
class PublishSink {
public:
    struct Wait {
        int fd = -1;  ///< -1: nothing to wait for but time
        bool read = false, write = false;
        int timeout_ms = -1;  ///< call work() after this time; -1: no such time
    };
    /// Time between attempts to connect: doubled from the first to the most, with jitter if they
    /// differ.
    struct Backoff {
        unsigned first_ms = 1000, most_ms = 1000;
    };
    PublishSink() = default;
    PublishSink(const PublishSink&) = delete;
    PublishSink& operator=(const PublishSink&) = delete;
    virtual ~PublishSink();

    /// Begins to connect, or does.
    virtual Result<void> connect() = 0;
    virtual bool connected() const = 0;
    /// Takes a line; false when there is no room for one now. After an error nothing more is taken
    /// before connect(). An error of another code than `io`, here and of work(), says that the
    /// receiver may take later what it had. Where connections end as `io` again and again with the
    /// same large line on its way, a gap is sent in its place.
    virtual Result<bool> send(const PublishLine& line) = 0;
    /// Goes on with what is under way.
    virtual Result<void> work() = 0;
    virtual Wait wait() const = 0;
    /// Lines that reached the receiver since the last call, in the order of send().
    virtual size_t take_delivered() = 0;
    /// Which of the lines that take_delivered() told of last no receiver will ever take, such as
    /// one that is too large: a gap is sent for each.
    virtual std::vector<size_t> take_lost() { return {}; }
    /// Ends the connection; lines that were not delivered are forgotten.
    virtual void disconnect() = 0;
    /// Whether a failure is an outage that passes.
    virtual bool reconnects() const { return true; }
    /// Whether the last failure was a full disk.
    virtual bool disk_full() const { return false; }

    Backoff backoff;
};

/// Standard output, which stays as it is: no flag of it is changed.
std::unique_ptr<PublishSink> make_stdout_sink();
/// A file, created where it is missing; a FIFO is written without waiting for readers. Errors: as
/// of open(), not_found and io, naming the path.
Result<std::unique_ptr<PublishSink>> make_file_sink(const std::string& path, bool append);
/// A listening unix socket (stream), which need not be there yet. Errors: invalid_argument for a
/// path that is empty or too long.
Result<std::unique_ptr<PublishSink>> make_socket_sink(const std::string& path);

/// The sink, which gets records as onvif_line() writes them.
std::unique_ptr<PublishSink> make_onvif_sink(std::unique_ptr<PublishSink> sink);

struct PublishOptions {
    unsigned queue_size = 256;  ///< frames in memory that wait
    std::string spool_dir{};    ///< "" = none
    uint64_t spool_max_bytes = 64 << 20;
    uint64_t spool_max_age_s = 0;  ///< 0 = no limit
};

struct PublishCounts {
    uint64_t queued = 0;    ///< in memory alone, now
    uint64_t sent = 0;      ///< records that reached the receiver
    uint64_t spooled = 0;   ///< records that had to wait in the spool
    uint64_t replayed = 0;  ///< records of `sent` that came from the spool
    uint64_t dropped = 0;   ///< records lost
    uint64_t spool_bytes = 0, spool_records = 0;
    uint64_t reconnects = 0;
    bool connected = false;
};

/// What a publisher says on its own, from its thread and with no lock held. A thread that close()
/// leaves to itself calls them later too, so they own, or share, what they use.
struct PublishEvents {
    /// `state`: connecting, connected, spooling, draining, stopped. `reason` may be empty.
    std::function<void(const char* state, const std::string& reason, const PublishCounts& counts)>
        state;
    /// The end: a sink failed that does not reconnect. Records are dropped from now on.
    std::function<void(const Error& error, bool disk_full)> failed;
    /// The spool could not be written; said once.
    std::function<void(const Error& error)> spool_failed;
};

/// Sends records on a thread of its own. put() never waits for the receiver or a disk: when the
/// queue is full the oldest record is dropped, and a gap record stands in its place. With a spool,
/// records wait on disk while the receiver is away or slow, and are sent from there, oldest first,
/// once it is back. A record is in the spool before it is sent and until it was delivered, so that
/// it survives the process.
/// Thread-safety: take(), put() and give_back() by one thread, the others by any.
class Publisher {
public:
    /// Errors: busy when another process has the spool, io and not_found when it cannot be written.
    static Result<std::unique_ptr<Publisher>> open(std::unique_ptr<PublishSink> sink,
                                                   const PublishOptions& options,
                                                   PublishEvents events);
    /// close() without time.
    ~Publisher();
    Publisher(const Publisher&) = delete;
    Publisher& operator=(const Publisher&) = delete;

    /// An empty record with the memory of one that was written.
    std::unique_ptr<FrameRecord> take();
    void put(std::unique_ptr<FrameRecord> record);
    /// Of take(), without sending it.
    void give_back(std::unique_ptr<FrameRecord> record);

    /// Waits until everything was delivered or, while the receiver is away, lies in the spool.
    /// False after `timeout_ms` or interrupt().
    bool drain(unsigned timeout_ms);
    /// Ends drain(), which from now on does not wait, until resume().
    void interrupt();
    void resume();
    /// Drains and ends the thread. What is left after `timeout_ms` stays in the spool or is
    /// dropped. A thread that the system does not let end in time is left to itself.
    void close(unsigned timeout_ms);

    PublishCounts counts() const;
    /// Random text of this publisher, in every record.
    const std::string& run() const;

private:
    struct State;
    explicit Publisher(std::shared_ptr<State> state);
    std::shared_ptr<State> state_;
};

}  // namespace vartml
