// SPDX-License-Identifier: Apache-2.0
// Log lines of one runner: its name in front, its own level.
#pragma once
#include <string>
#include <string_view>

#include <vartml/log.h>

#include "lib/runtime/vart_errors.h"

namespace vartml::runtime {

class Logger {
public:
    Logger(const std::string& name, LogLevel level) : name_(clean(name)), level_(level) {}
    void operator()(LogLevel level, std::string_view text) const {
        if (level <= level_) log(level, name_, clean(text), true);
    }
    const std::string& name() const { return name_; }

private:
    std::string name_;
    LogLevel level_;
};

}  // namespace vartml::runtime
