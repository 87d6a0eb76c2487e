// SPDX-License-Identifier: Apache-2.0
// Models in the object store of JetStream, by what is in them: a worker on any machine has the one
// that was meant. Objects are as NATS's own clients have them (bucket `models`).
#pragma once
#include <future>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include <vartml/result.h>

#include "gst/fleet/store.h"

namespace vartml::fleet {

/// What a camera's `model` begins with that lies in the store; the object's name is the SHA-256 of
/// its bytes and the file's ending.
inline constexpr const char* stored_model = "object:";

/// Puts a model's file there, unless it is; returns `object:NAME`. Errors: invalid_argument for
/// what is no file (.rai, .tar.gz or .onnx), io, timeout.
Result<std::string> store_model(const StoreSettings& settings, const std::string& file);

/// Fetches it into the user's cache, unless it is there; returns its path. Errors: not_found,
/// bad_model where its bytes are not those that it is named after, io, timeout.
Result<std::string> fetch_model(const StoreSettings& settings, const std::string& model);

/// Fetches models on threads of its own. All members are called by one thread.
class Models {
public:
    explicit Models(StoreSettings settings) : settings_(std::move(settings)) {}
    /// Its path; nothing while it is on its way. What is no `object:` is its own path. After a
    /// failure the next call begins anew.
    std::optional<Result<std::string>> find(const std::string& model);
    /// Whether a call since the last one of this found its model on its way.
    bool take_awaited() { return std::exchange(awaited_, false); }

private:
    const StoreSettings settings_;
    std::map<std::string, std::future<Result<std::string>>> on_their_way_;
    std::map<std::string, std::string> paths_;
    bool awaited_ = false;
};

}  // namespace vartml::fleet
