// SPDX-License-Identifier: Apache-2.0
// The fleet as a page in a browser, made of the same state as the list.
#pragma once
#include <span>
#include <string>
#include <string_view>

#include <vartml/result.h>

#include "gst/fleet/fleet.h"

namespace vartml::fleet {

struct EmbeddedFile {
    std::string_view name, text;
};

/// Answers `/`, `/fleet.json` and `/picture?CAMERA` at HOST:PORT until SIGTERM or SIGINT; returns
/// the exit status.
int serve_page(const StoreSettings& settings, const std::string& address);

/// page.html alone.
std::span<const EmbeddedFile> page_files();

}  // namespace vartml::fleet
