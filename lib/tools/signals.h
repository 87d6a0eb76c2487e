// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace vartml::tools {

// From now on SIGHUP, SIGINT and SIGTERM take away what the program made for a while
// (lib/base/temporaries.h), then end it as they always do. A signal that is ignored, as by nohup,
// stays so. Commands with handlers of their own replace these.
void leave_nothing_behind();

}  // namespace vartml::tools
