// SPDX-License-Identifier: Apache-2.0
// Two readers of libarchive, one behind the other: one takes the gzip stream apart, the other the
// tar in it. Between them bytes are counted and summed up, which the library does not do.
#include "lib/model/tar_stream.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <archive.h>
#include <archive_entry.h>

#include "lib/base/text.h"
#include "lib/model/containers.h"
#include "lib/model/entries.h"

namespace vartml::artifact {
namespace {

// '#' stands for the number of the partition, '@' for the model's name.
struct Row {
    std::string_view entry, file, section;
};
constexpr Row rows[] = {
    {"vaiml_par_#/partition-info.json", "@_stage#_partition.json", ""},
    {"vaiml_par_#/0/flexmlrt-hsi.json", "@_stage#_hsi.json", ""},
    {"vaiml_par_#/0/buffer_info.json", "@_stage#_buffers.json", ""},
    {"vaiml_par_#/0/@_mla_stats.yaml", "@_stage#_mla_stats.yaml", ""},
    {"vaiml_par_#/0/program.vnp", "@_stage#_mla.elf", program_section},
    {"vaiml_par_#/0/weights.bin", "@_stage#_mla.elf", weights_section},
    {"vaiml_cpu_subgraph_#/program.vnp", "@_cpu#.vnp", ""},
    {"vaiml_cpu_subgraph_#/weights.bin", "@_cpu#.bin", ""},
    {"modelinfo", "@.modelinfo", ""},
};

// A name in a ustar header has 100 bytes; the longest ending here is
// "_stage999999999_mla_stats.yaml".
constexpr size_t max_stem_bytes = 64;

std::string tar_stem(std::string_view model_name) {
    return file_stem(model_name).substr(0, max_stem_bytes);
}

std::string filled(std::string_view pattern, std::string_view number, std::string_view stem) {
    std::string out;
    for (const char c : pattern) {
        if (c == '#')
            out += number;
        else if (c == '@')
            out += stem;
        else
            out += c;
    }
    return out;
}

}  // namespace

std::string_view partition_number(std::string_view name) {
    return name.substr(name.find_last_not_of("0123456789") + 1);
}

std::optional<TarName> tar_name(std::string_view entry, std::string_view model_name) {
    const std::string_view number = partition_number(entry.substr(0, entry.find('/')));
    for (const Row& row : rows)
        if (filled(row.entry, number, file_stem(model_name)) == entry)
            return TarName{filled(row.file, number, tar_stem(model_name)), row.section};
    if (entry.find('/') != entry.npos) return std::nullopt;
    return TarName{std::string(entry), {}};
}

std::string mpk_name(std::string_view model_name) {
    return tar_stem(model_name) + "_mpk.json";
}

namespace {

struct FreeRead {
    void operator()(archive* a) const { archive_read_free(a); }
};
using Reader = std::unique_ptr<archive, FreeRead>;

constexpr const char* damaged = "; the file is damaged, compile or copy it again";
constexpr size_t trailer_bytes = 8;  // CRC-32 and size modulo 2^32 (RFC 1952)

// CRC-32 of gzip, eight bytes per step.
constexpr auto crc_tables = [] {
    std::array<std::array<uint32_t, 256>, 8> t{};
    for (uint32_t i = 0; i < 256; ++i) {
        uint32_t c = i;
        for (int bit = 0; bit < 8; ++bit) c = (c >> 1) ^ ((c & 1) ? 0xedb88320u : 0);
        t[0][i] = c;
    }
    for (size_t k = 1; k < 8; ++k)
        for (size_t i = 0; i < 256; ++i) t[k][i] = t[0][t[k - 1][i] & 0xff] ^ (t[k - 1][i] >> 8);
    return t;
}();

uint32_t add_crc(uint32_t crc, Bytes bytes) {
    const auto* p = reinterpret_cast<const uint8_t*>(bytes.data());
    size_t n = bytes.size();
    uint32_t c = ~crc;
    for (; n >= 8; n -= 8, p += 8) {
        uint64_t word;
        std::memcpy(&word, p, sizeof word);
        word ^= c;
        c = 0;
        for (size_t k = 0; k < 8; ++k) c ^= crc_tables[7 - k][(word >> 8 * k) & 0xff];
    }
    for (; n > 0; --n, ++p) c = crc_tables[0][(c ^ *p) & 0xff] ^ (c >> 8);
    return ~c;
}

std::string reason_of(archive* a) {
    const char* text = archive_error_string(a);
    return printable(text ? text : "no reason given");
}

std::string bytes_text(uint64_t n) {
    return std::to_string(n) + " bytes";
}

const char* type_name(archive_entry* e) {
    if (archive_entry_hardlink(e)) return "is a hard link";
    switch (archive_entry_filetype(e)) {
        case AE_IFREG:
            return archive_entry_sparse_count(e) > 0 ? "is a sparse file" : "";
        case AE_IFLNK:
            return "is a symbolic link";
        case AE_IFDIR:
            return "is a directory";
        case AE_IFCHR:
        case AE_IFBLK:
            return "is a device";
        case AE_IFIFO:
            return "is a named pipe";
        default:
            return "is of an unknown type";
    }
}

}  // namespace

Error entry_error(const std::string& path, std::string_view entry, const std::string& text) {
    const std::string what = entry.empty() ? "" : "entry '" + printable(entry) + "' ";
    return {ErrorCode::bad_model, path + ": " + what + text};
}

class TarStream::Gunzip {
public:
    Gunzip(const std::string& path, const TarLimits& limits, Bytes file)
        : path_(path), limits_(limits), file_(file) {}

    Result<void> open() {
        if (file_.size() > limits_.compressed_bytes)
            return entry_error(path_, "",
                               "has " + bytes_text(file_.size()) + ", at most " +
                                   bytes_text(limits_.compressed_bytes) + " are read");
        reader_.reset(archive_read_new());
        archive* a = reader_.get();
        if (!a) return Error{ErrorCode::out_of_memory, path_ + ": no memory to read it"};
        archive_read_support_filter_gzip(a);
        archive_read_support_format_raw(a);
        archive_read_support_format_empty(a);
        if (archive_read_open_memory(a, file_.data(), file_.size()) != ARCHIVE_OK)
            return broken(reason_of(a));
        // The file itself counts as a filter. More than one would be gzip in gzip.
        if (archive_filter_count(a) > 2)
            return entry_error(path_, "", "is compressed more than once");
        if (archive_filter_code(a, 0) != ARCHIVE_FILTER_GZIP)
            return broken("it has no gzip header");
        archive_entry* entry = nullptr;
        const int status = archive_read_next_header(a, &entry);
        is_at_end_ = status == ARCHIVE_EOF;
        if (status < ARCHIVE_WARN) return broken(reason_of(a));
        return {};
    }

    // The next piece of the tar; empty at the end of the stream.
    Result<Bytes> next() {
        const void* block = nullptr;
        size_t size = 0;
        la_int64_t offset = 0;
        while (!is_at_end_ && size == 0) {
            const int status = archive_read_data_block(reader_.get(), &block, &size, &offset);
            if (status == ARCHIVE_EOF)
                is_at_end_ = true;
            else if (status < ARCHIVE_OK)
                return broken(reason_of(reader_.get()));
        }
        const Bytes bytes(static_cast<const std::byte*>(block), is_at_end_ ? 0 : size);
        total_ += bytes.size();
        crc_ = add_crc(crc_, bytes);
        if (total_ > limits_.total_bytes)
            return entry_error(path_, "",
                               "unpacks to more than " + bytes_text(limits_.total_bytes));
        if (limits_.expands_too_much(total_, file_.size()))
            return entry_error(path_, "",
                               "has " + bytes_text(file_.size()) + " and unpacks to more than " +
                                   std::to_string(limits_.expansion) + " times as many");
        return bytes;
    }

    // After the end: the stream is whole and nothing follows it.
    Result<void> check_end() {
        const auto used = static_cast<uint64_t>(archive_filter_bytes(reader_.get(), -1));
        if (used < file_.size())
            return entry_error(path_, "",
                               "has " + bytes_text(file_.size() - used) +
                                   " behind the end of the gzip stream, expected none");
        if (file_.size() < trailer_bytes) return broken("it has no end");
        uint32_t recorded[2];
        std::memcpy(recorded, file_.last(trailer_bytes).data(), sizeof recorded);
        if (recorded[0] != crc_ || recorded[1] != static_cast<uint32_t>(total_))
            return Error{ErrorCode::bad_model, path_ + ": the checksum of the gzip stream is " +
                                                   hex(crc_) + " over " + bytes_text(total_) +
                                                   ", recorded " + hex(recorded[0]) + " over " +
                                                   bytes_text(recorded[1]) + damaged};
        return {};
    }

    uint64_t total() const { return total_; }

private:
    Error broken(const std::string& why) const {
        return {ErrorCode::bad_model,
                path_ + ": the gzip stream cannot be read (" + why + ')' + damaged};
    }

    const std::string& path_;
    const TarLimits& limits_;
    const Bytes file_;
    Reader reader_;
    bool is_at_end_ = false;
    uint64_t total_ = 0;
    uint32_t crc_ = 0;
};

class TarStream::Tar {
public:
    explicit Tar(Gunzip& gunzip) : gunzip_(gunzip), reader_(archive_read_new()) {
        if (!reader_) return;
        archive_read_support_format_tar(reader_.get());
        archive_read_support_format_empty(reader_.get());
    }
    int open() {
        return reader_ ? archive_read_open(reader_.get(), this, nullptr, give, nullptr)
                       : ARCHIVE_FATAL;
    }
    archive* get() { return reader_.get(); }
    // What the end of the archive left of the last piece.
    Bytes rest() const {
        const auto used = static_cast<uint64_t>(archive_filter_bytes(reader_.get(), -1));
        return last_.last(std::min<uint64_t>(gunzip_.total() - used, last_.size()));
    }
    // Of the layer below; it comes before what this one makes of it.
    const std::optional<Error>& error() const { return error_; }

private:
    static la_ssize_t give(archive* a, void* self, const void** block) {
        auto& tar = *static_cast<Tar*>(self);
        auto bytes = tar.gunzip_.next();
        if (!bytes) {
            tar.error_ = bytes.error();
            archive_set_error(a, EIO, "the stream below failed");
            return -1;
        }
        tar.last_ = *bytes;
        *block = bytes->data();
        return static_cast<la_ssize_t>(bytes->size());
    }
    Gunzip& gunzip_;
    Reader reader_;
    Bytes last_;
    std::optional<Error> error_;
};

TarStream::TarStream(const std::string& path, const TarLimits& limits,
                     std::shared_ptr<const MappedFile> file)
    : path_(path), limits_(limits), file_(std::move(file)) {}

TarStream::~TarStream() = default;

Result<std::unique_ptr<TarStream>> TarStream::open(const std::string& path,
                                                   const TarLimits& limits) {
    auto file = MappedFile::open(path);
    if (!file) return file.error();
    std::unique_ptr<TarStream> s(new TarStream(path, limits, std::move(*file)));
    s->gunzip_ = std::make_unique<Gunzip>(s->path_, s->limits_, s->file_->bytes());
    if (auto r = s->gunzip_->open(); !r) return r.error();
    s->tar_ = std::make_unique<Tar>(*s->gunzip_);
    if (s->tar_->open() != ARCHIVE_OK) {
        if (s->tar_->error()) return *s->tar_->error();
        return s->no_tar();
    }
    return s;
}

Result<std::optional<TarItem>> TarStream::next() {
    archive_entry* e = nullptr;
    const int status = archive_read_next_header(tar_->get(), &e);
    position_ = 0;
    if (tar_->error()) return *tar_->error();
    if (status == ARCHIVE_EOF) {
        if (auto r = finish(); !r) return r.error();
        return std::optional<TarItem>();
    }
    if (status != ARCHIVE_OK) return no_tar();
    if (++entries_ > limits_.entries)
        return entry_error(path_, "",
                           "has more than " + std::to_string(limits_.entries) + " entries");
    TarItem item;
    const char* name = archive_entry_pathname(e);
    item.name = name ? name : "";
    item.size_bytes = static_cast<uint64_t>(std::max<la_int64_t>(archive_entry_size(e), 0));
    item.type_fault = type_name(e);
    item.is_file = item.type_fault.empty();
    const int format = archive_format(tar_->get());
    if (item.is_file && format != ARCHIVE_FORMAT_TAR_USTAR && format != ARCHIVE_FORMAT_TAR)
        item.type_fault =
            "is an extended one (" + printable(archive_format_name(tar_->get())) + ')';
    if (item.size_bytes > limits_.entry_bytes)
        return entry_error(path_, item.name,
                           "has " + bytes_text(item.size_bytes) + ", at most " +
                               bytes_text(limits_.entry_bytes) + " are read");
    return std::optional(std::move(item));
}

Result<Bytes> TarStream::data() {
    for (;;) {
        const void* block = nullptr;
        size_t size = 0;
        la_int64_t offset = 0;
        const int status = archive_read_data_block(tar_->get(), &block, &size, &offset);
        if (tar_->error()) return *tar_->error();
        if (status == ARCHIVE_EOF) return Bytes();
        if (status != ARCHIVE_OK || offset != static_cast<la_int64_t>(position_))
            return Error{ErrorCode::bad_model, path_ + ": the tar archive cannot be read (" +
                                                   reason_of(tar_->get()) + ')' + damaged};
        position_ += size;
        if (size != 0) return Bytes(static_cast<const std::byte*>(block), size);
    }
}

Error TarStream::no_tar() const {
    if (!tar_->get()) return {ErrorCode::out_of_memory, path_ + ": no memory to read it"};
    return {ErrorCode::bad_model, path_ + ": holds no tar archive, or a damaged one (" +
                                      reason_of(tar_->get()) + "); compile or copy it again"};
}

// Behind the last entry there are only zeros; the gzip stream is read to its end for its checksum.
Result<void> TarStream::finish() {
    const auto is_zero = [](Bytes bytes) {
        return std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
    };
    bool good = is_zero(tar_->rest());
    for (;;) {
        auto rest = gunzip_->next();
        if (!rest) return rest.error();
        if (rest->empty()) break;
        good = good && is_zero(*rest);
    }
    if (auto r = gunzip_->check_end(); !r) return r;
    if (!good) return entry_error(path_, "", "has data behind the end of the tar archive");
    if (entries_ == 0) return entry_error(path_, "", "has no entries");
    return {};
}

}  // namespace vartml::artifact
