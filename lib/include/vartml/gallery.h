// SPDX-License-Identifier: Apache-2.0
// A gallery: names with embeddings, and who is most like one.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/result.h>

namespace vartml {

/// Embeddings of one model with the names that they were enrolled under; a name may have several.
/// Vectors are unit vectors, as decoders give them: their product is the cosine of the angle
/// between them. Thread-safety: none.
class Gallery {
public:
    struct Match {
        std::string_view name;  ///< valid until the gallery changes
        float similarity = 0;   ///< cosine, -1 to 1
    };

    /// Reads a file that save() wrote. Errors: not_found, io, bad_model naming file and line.
    static Result<Gallery> load(const std::string& file);
    /// Writes the file anew, at once or not at all; a link stays, and what it leads to is written.
    /// Errors: io.
    Result<void> save(const std::string& file) const;
    /// Waits until nobody else, in this process or another, has the lock of the file, a file
    /// `.NAME.lock` beside it, and has it until what is returned goes. Who changes a file loads and
    /// saves it meanwhile. Errors: io; not_found (no folder); timeout once `cancel` is true.
    static Result<std::shared_ptr<void>> lock(const std::string& file,
                                              const std::atomic<bool>* cancel = nullptr);

    /// `model` is the hash of the model that made the vector, "" = not known. Errors:
    /// invalid_argument (an empty name, or one with a tab or line break; no vector of length 1; a
    /// vector of another model or size than those that are there).
    Result<void> enrol(std::string_view name, std::string_view model,
                       std::span<const float> vector);
    /// How many vectors it had.
    size_t forget(std::string_view name);

    /// Whether vectors of a model and size can be compared with those that are there. Errors:
    /// invalid_argument, as enrol.
    Result<void> check(std::string_view model, size_t size) const;
    /// The most similar vector's name; of equal ones that which was enrolled first. Nothing where
    /// the gallery is empty or the vector has another size.
    std::optional<Match> nearest(std::span<const float> vector) const;

    std::vector<std::string> names() const;  ///< each once, in the order of enrolment
    size_t vectors() const { return owners_.size(); }
    const std::string& model() const { return model_; }  ///< hash of whose they are; "": not known
    size_t size() const { return size_; }                ///< numbers of a vector; 0: there is none

private:
    std::string file_;   // where it came from, for messages
    std::string model_;  // hash; "" = not known
    size_t size_ = 0;
    std::vector<std::string> owners_;  // of each vector
    std::vector<float> numbers_;       // vectors one after another
};

}  // namespace vartml
