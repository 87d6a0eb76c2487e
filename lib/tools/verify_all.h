// SPDX-License-Identifier: Apache-2.0
// `vartml verify --all FOLDER`: every model of a folder.
#pragma once

namespace vartml::tools {

// Arguments as those of `verify`, with --all among them.
int verify_all(int argc, const char* const* argv);

}  // namespace vartml::tools
