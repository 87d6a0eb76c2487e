// SPDX-License-Identifier: Apache-2.0
// The entries of a compiled model on their way to a container, and the rules for their names.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

#include "lib/base/file.h"
#include "lib/model/compiled_model.h"
#include "lib/model/manifest.h"

namespace vartml::artifact {

struct Entry {
    Blob blob;                                 // without offset
    std::vector<Bytes> pieces;                 // the content, one after another
    std::shared_ptr<const std::string> owner;  // of pieces that are not the model's own
};

// All entries but model.vmf, by name: those in model.files as they are, the others made from the
// model. The pieces point into `model`. Errors: internal for a model that the format cannot hold.
Result<std::vector<Entry>> make_entries(const CompiledModel& model);

// "" or what is wrong with the name of an entry: "holds '..'".
std::string name_fault(std::string_view name);

// The parts of that rule: A-Z, a-z, 0-9, '.', '_' and '-'; ".json" and the other endings of
// entries.
bool has_only_name_characters(std::string_view name);
bool has_known_ending(std::string_view name);

// Whether a path in the directory form may be there without being an entry: compile.log, debug/,
// weights/ (packed for this host), the other containers, the manifest.
bool is_no_entry(std::string_view name);

// The folder that a .tar.gz is unpacked into: fresh, for this user alone, gone after a failure.
// The destructor removes the folder unless it was put in place to stay.
class ExtractionFolder {
public:
    // Errors: io; invalid_argument where a folder that is to stay would replace something that is
    // not ours.
    static Result<ExtractionFolder> create(const Extraction& extraction);
    ExtractionFolder(ExtractionFolder&& other) noexcept;
    ExtractionFolder& operator=(ExtractionFolder&&) = delete;
    ~ExtractionFolder();

    const std::string& path() const { return path_; }
    const Fd& fd() const { return fd_; }  // of the open folder
    // Puts a folder that is to stay in its place; others stay where they are.
    Result<void> commit();

private:
    ExtractionFolder() = default;
    std::string path_;
    std::optional<StagedDirectory> staged_;  // of a folder that is to stay
    Fd fd_;
};

}  // namespace vartml::artifact
