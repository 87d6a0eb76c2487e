// SPDX-License-Identifier: Apache-2.0
// A .rai: manifest, entries and footer in one mapped file.
#include <algorithm>
#include <cstring>

#include "lib/artifact/containers.h"
#include "lib/artifact/foreign.h"
#include "lib/artifact/rai_footer.h"
#include "lib/common/crc32c.h"

namespace vartml::artifact {
namespace {

class RaiContainer final : public Container {
public:
    RaiContainer(std::string path, std::shared_ptr<const MappedFile> file)
        : path_(std::move(path)), file_(std::move(file)) {
        format = "rai";
    }

    Result<void> open() {
        const Bytes all = file_->bytes();
        const auto bytes = check_frame(all);
        if (!bytes) return bytes.error();
        auto read = read_manifest(*bytes, path_, true);
        if (!read) return read.error();
        manifest = std::move(*read);
        if (manifest.file_size != all.size())
            return bad("the manifest records a file size of " + std::to_string(manifest.file_size) +
                       ", the file has " + std::to_string(all.size()));
        return check_gaps(all, bytes->size());
    }

    Result<Bytes> entry(size_t index) override {
        const Blob& blob = manifest.blobs[index];
        return verified(*file_, blob.offset, blob.size, blob, path_ + ": blob '" + blob.name + "'");
    }

private:
    Error bad(const std::string& what) const { return {ErrorCode::bad_model, path_ + ": " + what}; }
    Error truncated(const std::string& what) const {
        return bad(what + "; the file is truncated, compile or copy it again");
    }

    // Footer, length and checksum of the manifest; returns the manifest's bytes.
    Result<Bytes> check_frame(Bytes all) const {
        if (all.size() < min_rai_bytes)
            return truncated("has " + std::to_string(all.size()) + " bytes, expected at least " +
                             std::to_string(min_rai_bytes));
        Footer footer;
        std::memcpy(&footer, all.last(sizeof footer).data(), sizeof footer);
        if (std::memcmp(footer.magic, footer_magic, sizeof footer.magic) != 0)
            return truncated("has no end mark");
        if (footer.file_size != all.size())
            return truncated("has " + std::to_string(all.size()) + " bytes, recorded " +
                             std::to_string(footer.file_size));
        uint32_t prefix;
        std::memcpy(&prefix, all.data(), sizeof prefix);
        const uint64_t end = all.size() - sizeof footer;
        if (footer.manifest_size > max_manifest_bytes || footer.manifest_size + 4ull > end ||
            prefix != footer.manifest_size || footer.reserved != 0 || end % 64 != 0)
            return bad("the manifest has " + std::to_string(prefix) +
                       " bytes at the start of the file and " +
                       std::to_string(footer.manifest_size) +
                       " in its end mark; the file is damaged, compile or copy it again");
        const Bytes bytes = all.first(footer.manifest_size + 4u);
        if (const uint32_t crc = crc32c(bytes); crc != footer.manifest_crc32c)
            return bad("manifest: checksum is " + hex(crc) + ", recorded " +
                       hex(footer.manifest_crc32c) +
                       "; the file is damaged, compile or copy it again");
        return bytes;
    }

    Result<void> check_gaps(Bytes all, size_t begin) const {
        const auto gap = [&](uint64_t from, uint64_t to) {
            return from <= to && std::ranges::all_of(all.subspan(from, to - from),
                                                     [](std::byte b) { return b == std::byte{0}; });
        };
        uint64_t end = begin;
        for (const Blob& b : manifest.blobs) {
            if (!gap(end, b.offset))
                return bad("the gap before entry '" + b.name +
                           "' is not zero; the file is damaged, compile or copy it again");
            end = b.offset + b.size;
        }
        if (!gap(end, all.size() - sizeof(Footer)))
            return bad(
                "the gap before the end mark is not zero, or an entry reaches into it; the "
                "file is damaged, compile or copy it again");
        return {};
    }

    std::string path_;
    std::shared_ptr<const MappedFile> file_;
};

}  // namespace

Result<std::shared_ptr<Container>> open_rai(const std::string& path) {
    auto file = MappedFile::open(path);
    if (!file) return file.error();
    if (!looks_like_rai((*file)->bytes())) return refuse_file(path, (*file)->bytes());
    auto container = std::make_shared<RaiContainer>(path, std::move(*file));
    if (auto r = container->open(); !r) return r.error();
    return std::shared_ptr<Container>(std::move(container));
}

}  // namespace vartml::artifact
