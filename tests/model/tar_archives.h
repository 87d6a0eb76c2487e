// SPDX-License-Identifier: Apache-2.0
// Archives made by hand, good ones and bad ones.
#pragma once
#include <archive.h>
#include <archive_entry.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

namespace vartml::test {

struct TarEntry {
    std::string name, bytes = {};
    unsigned type = AE_IFREG;
    std::string link = {};       // of a symbolic link
    std::string hard_link = {};  // of a hard link
    unsigned mode = 0644;
};

enum class TarFormat { ustar, pax, gnu };

namespace tar_detail {

inline la_ssize_t append(archive*, void* into, const void* bytes, size_t size) {
    static_cast<std::string*>(into)->append(static_cast<const char*>(bytes), size);
    return static_cast<la_ssize_t>(size);
}

inline void open(archive* a, std::string& into) {
    archive_write_set_bytes_in_last_block(a, 1);
    EXPECT_EQ(archive_write_open(a, &into, nullptr, append, nullptr), ARCHIVE_OK);
}

}  // namespace tar_detail

// The uncompressed archive. libarchive writes any name, also those that no reader should take.
inline std::string make_tar(const std::vector<TarEntry>& entries,
                            TarFormat format = TarFormat::ustar) {
    std::string bytes;
    archive* a = archive_write_new();
    format == TarFormat::ustar ? archive_write_set_format_ustar(a)
    : format == TarFormat::gnu ? archive_write_set_format_gnutar(a)
                               : archive_write_set_format_pax(a);
    tar_detail::open(a, bytes);
    for (const TarEntry& t : entries) {
        archive_entry* e = archive_entry_new();
        archive_entry_set_pathname(e, t.name.c_str());
        archive_entry_set_filetype(e, t.type);
        archive_entry_set_perm(e, static_cast<mode_t>(t.mode));
        archive_entry_set_size(e, static_cast<la_int64_t>(t.bytes.size()));
        if (!t.link.empty()) archive_entry_set_symlink(e, t.link.c_str());
        if (!t.hard_link.empty()) archive_entry_set_hardlink(e, t.hard_link.c_str());
        EXPECT_EQ(archive_write_header(a, e), ARCHIVE_OK) << archive_error_string(a);
        archive_write_data(a, t.bytes.data(), t.bytes.size());
        archive_entry_free(e);
    }
    EXPECT_EQ(archive_write_close(a), ARCHIVE_OK);
    archive_write_free(a);
    return bytes;
}

inline std::string gzip(std::string_view plain) {
    std::string bytes;
    archive* a = archive_write_new();
    archive_write_set_format_raw(a);
    archive_write_add_filter_gzip(a);
    archive_write_set_options(a, "gzip:!timestamp");
    tar_detail::open(a, bytes);
    archive_entry* e = archive_entry_new();
    archive_entry_set_filetype(e, AE_IFREG);
    EXPECT_EQ(archive_write_header(a, e), ARCHIVE_OK);
    archive_write_data(a, plain.data(), plain.size());
    archive_entry_free(e);
    archive_write_close(a);
    archive_write_free(a);
    return bytes;
}

// The entries of an archive, with what their headers say.
struct SeenEntry {
    TarEntry entry;
    long uid = -1, gid = -1, mtime = -1;
    std::string owner;
    int format = 0;
};
inline std::vector<SeenEntry> list_tar(const std::string& path) {
    std::vector<SeenEntry> out;
    archive* a = archive_read_new();
    archive_read_support_filter_gzip(a);
    archive_read_support_format_tar(a);
    EXPECT_EQ(archive_read_open_filename(a, path.c_str(), 65536), ARCHIVE_OK);
    archive_entry* e = nullptr;
    while (archive_read_next_header(a, &e) == ARCHIVE_OK) {
        SeenEntry s;
        s.entry.name = archive_entry_pathname(e);
        s.entry.type = archive_entry_filetype(e);
        s.entry.mode = archive_entry_perm(e);
        s.uid = static_cast<long>(archive_entry_uid(e));
        s.gid = static_cast<long>(archive_entry_gid(e));
        s.mtime = static_cast<long>(archive_entry_mtime(e));
        const char *user = archive_entry_uname(e), *group = archive_entry_gname(e);
        s.owner = std::string(user ? user : "") + (group ? group : "");
        s.format = archive_format(a);
        s.entry.bytes.resize(static_cast<size_t>(archive_entry_size(e)));
        archive_read_data(a, s.entry.bytes.data(), s.entry.bytes.size());
        out.push_back(std::move(s));
    }
    archive_read_free(a);
    return out;
}

// Changes the header of entry number `index` and makes its checksum right again.
inline void change_header(std::string& tar, size_t index, size_t at, std::string_view bytes) {
    constexpr size_t block = 512, size_at = 124, sum_at = 148;
    size_t header = 0;
    for (; index > 0; --index) {
        const size_t size = std::stoul(tar.substr(header + size_at, 11), nullptr, 8);
        header += block + (size + block - 1) / block * block;
    }
    tar.replace(header + at, bytes.size(), bytes);
    tar.replace(header + sum_at, 8, 8, ' ');
    unsigned sum = 0;
    for (size_t i = 0; i < block; ++i) sum += static_cast<unsigned char>(tar[header + i]);
    char text[9];
    std::snprintf(text, sizeof text, "%06o", sum);
    std::memcpy(tar.data() + header + sum_at, text, 7);
}

}  // namespace vartml::test
