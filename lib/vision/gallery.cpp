// SPDX-License-Identifier: Apache-2.0
// The file: a line "vartml.gallery/1", the model's hash and the size of a vector, then a line for
// each vector with its name and numbers. Parts of a line are separated by tabs, numbers by spaces.
#include <vartml/gallery.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>

#include "lib/base/file.h"
#include "lib/base/text.h"
#include "lib/vision/modelinfo.h"

namespace vartml {

namespace {

constexpr std::string_view first_word = "vartml.gallery/1";
// ours: 100 000 people of 512 numbers each fit
constexpr size_t file_limit_bytes = size_t{1} << 30, most_numbers = 65536;

float product(const float* a, const float* b, size_t count) {
    float sums[8] = {};  // side by side: additions of floats keep their order
    size_t i = 0;
    for (; i + 8 <= count; i += 8)
        for (size_t k = 0; k < 8; ++k) sums[k] += a[i + k] * b[i + k];
    float sum = 0;
    for (; i < count; ++i) sum += a[i] * b[i];
    for (const float part : sums) sum += part;
    return sum;
}

bool has_unit_length(std::span<const float> vector) {
    return std::abs(product(vector.data(), vector.data(), vector.size()) - 1) < 0.01f;
}

Error bad(const std::string& what) {
    return {ErrorCode::invalid_argument, what};
}

// What stands before the next `separator`, which is taken off too.
std::string_view take(std::string_view& text, char separator) {
    const size_t end = text.find(separator);
    const std::string_view part = text.substr(0, end);
    text = end == text.npos ? std::string_view() : text.substr(end + 1);
    return part;
}

bool read_numbers(std::string_view text, std::vector<float>& numbers) {
    numbers.clear();
    while (!text.empty()) {
        const std::string_view word = take(text, ' ');
        float number = 0;
        const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), number);
        if (error != std::errc() || end != word.data() + word.size()) return false;
        numbers.push_back(number);
        if (numbers.size() > most_numbers) return false;
    }
    return !numbers.empty();
}

// What a link is a link to: it stays one, and all who use the file have one lock.
std::string target_of(const std::string& file) {
    namespace fs = std::filesystem;
    constexpr int most_links = 40;  // as Linux follows
    std::error_code error;
    fs::path target = file;
    // One by one: the file that the last leads to may not be there yet.
    for (int n = 0; n < most_links && fs::is_symlink(target, error); ++n)
        target = target.parent_path() / fs::read_symlink(target, error);
    target = fs::weakly_canonical(target, error);
    return error ? file : target.string();
}

}  // namespace

Result<Gallery> Gallery::load(const std::string& file) {
    auto read = vision::read_text(file, file_limit_bytes);
    if (!read) return Error{read.error().code, "gallery " + read.error().message};
    std::string_view text = *read;
    unsigned line_number = 1;
    const auto wrong = [&](const std::string& what) {
        return Error{ErrorCode::bad_model, "gallery file '" + file + "', line " +
                                               std::to_string(line_number) + ": " + what};
    };
    std::string_view head = take(text, '\n');
    if (take(head, '\t') != first_word)
        return wrong("expected " + std::string(first_word) + ", which vartmlgallery writes");
    Gallery gallery;
    const std::string model(take(head, '\t'));
    std::vector<float> numbers;
    while (!text.empty()) {
        ++line_number;
        std::string_view line = take(text, '\n');
        if (line.empty()) continue;
        const std::string_view name = take(line, '\t');
        if (!read_numbers(line, numbers))
            return wrong("expected a name, a tab and numbers separated by spaces");
        if (auto done = gallery.enrol(name, model, numbers); !done)
            return wrong(done.error().message);
    }
    gallery.file_ = file;
    gallery.model_ = model;
    return gallery;
}

Result<void> Gallery::save(const std::string& file) const {
    std::string text = std::string(first_word) + '\t' + model_ + '\t' + std::to_string(size_);
    for (size_t i = 0; i < owners_.size(); ++i) {
        text += '\n' + owners_[i] + '\t';
        for (size_t k = 0; k < size_; ++k) {
            char digits[32];
            const auto [end, error] =
                std::to_chars(digits, digits + sizeof digits, numbers_[i * size_ + k]);
            if (k) text += ' ';
            text.append(digits, end);
        }
    }
    text += '\n';
    return replace_file(target_of(file), text);
}

Result<std::shared_ptr<void>> Gallery::lock(const std::string& file,
                                            const std::atomic<bool>* cancel) {
    const std::string place = target_of(file);
    auto lock = FileLock::acquire(parent_of(place) + "/." + std::string(last_part(place)) + ".lock",
                                  cancel);
    if (!lock) return lock.error();
    return std::shared_ptr<void>(std::make_shared<FileLock>(std::move(*lock)));
}

Result<void> Gallery::check(std::string_view model, size_t size) const {
    if (owners_.empty()) return {};
    const std::string of = file_.empty() ? "the gallery" : "gallery file '" + file_ + "'";
    if (size != size_)
        return bad("embeddings have " + std::to_string(size) + " numbers, those of " + of + " " +
                   std::to_string(size_) + "; enrol anew with this model, or use the model that " +
                   of + " was made with");
    if (!model.empty() && !model_.empty() && model != model_)
        return bad("embeddings are of the model with hash " + printable(model) + ", those of " +
                   of + " of " + printable(model_) +
                   "; enrol anew with this model, or use that one");
    return {};
}

Result<void> Gallery::enrol(std::string_view name, std::string_view model,
                            std::span<const float> vector) {
    if (name.empty() || !is_plain_text(name))
        return bad("name '" + printable(name) +
                   "' is no name, expected UTF-8 without control characters");
    if (vector.empty() || !has_unit_length(vector))
        return bad("the vector of '" + std::string(name) + "' has not the length 1");
    if (auto fits = check(model, vector.size()); !fits) return fits;
    if (owners_.empty() || model_.empty()) model_ = model;
    size_ = vector.size();
    owners_.emplace_back(name);
    numbers_.insert(numbers_.end(), vector.begin(), vector.end());
    return {};
}

size_t Gallery::forget(std::string_view name) {
    size_t kept = 0;
    for (size_t i = 0; i < owners_.size(); ++i) {
        if (owners_[i] == name) continue;
        if (kept != i) {
            owners_[kept] = std::move(owners_[i]);
            std::copy_n(numbers_.begin() + static_cast<ptrdiff_t>(i * size_), size_,
                        numbers_.begin() + static_cast<ptrdiff_t>(kept * size_));
        }
        ++kept;
    }
    const size_t gone = owners_.size() - kept;
    owners_.resize(kept);
    numbers_.resize(kept * size_);
    if (!kept) size_ = 0, model_.clear();
    return gone;
}

std::optional<Gallery::Match> Gallery::nearest(std::span<const float> vector) const {
    if (owners_.empty() || vector.size() != size_) return std::nullopt;
    std::optional<Match> best;
    for (size_t i = 0; i < owners_.size(); ++i) {
        const float similarity = product(vector.data(), numbers_.data() + i * size_, size_);
        if (std::isfinite(similarity) && (!best || similarity > best->similarity))
            best = {owners_[i], similarity};
    }
    return best;
}

std::vector<std::string> Gallery::names() const {
    std::vector<std::string> names;
    for (const std::string& owner : owners_) {
        if (std::ranges::find(names, owner) == names.end()) names.push_back(owner);
    }
    return names;
}

}  // namespace vartml
