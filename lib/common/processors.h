// SPDX-License-Identifier: Apache-2.0
// Processors of this process.
#pragma once

namespace vartml {

// Those that it may run on; at least 1.
unsigned usable_processors();

}  // namespace vartml
