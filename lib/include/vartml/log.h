// SPDX-License-Identifier: Apache-2.0
// The one way in which the library says something that is no return value.
#pragma once
#include <string_view>

namespace vartml {

/// Importance, most important first.
enum class LogLevel { error, warning, info, debug };

/// Receives one line without newline. May be called from any thread, also several at once; must not
/// call back into the library. `origin` names who speaks (the runner's name, or "" for the library
/// itself).
using LogFunction = void (*)(LogLevel level, std::string_view origin, std::string_view text,
                             void* user);

/// Replaces the receiver of log lines; nullptr restores the default, which writes `[vartml] <LEVEL>
/// <origin>: <text>` to standard error. Thread-safety: may be called at any time; lines in progress
/// may still reach the old receiver.
void set_log_function(LogFunction function, void* user);

/// Least important level that is passed on for lines without an origin; the environment variable
/// VARTML_LOG (ERROR, WARNING, INFO, DEBUG) sets the initial value, WARNING is the default.
void set_log_level(LogLevel level);
LogLevel log_level();

/// Sends a line to the receiver. Without `force`, only if `level` is at or above log_level().
void log(LogLevel level, std::string_view origin, std::string_view text, bool force = false);

}  // namespace vartml
