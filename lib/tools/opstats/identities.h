// SPDX-License-Identifier: Apache-2.0
// What holds between the numbers of every summary.
#pragma once
#include <string>
#include <vector>

#include "lib/tools/opstats/summary.h"

namespace vartml::profiling {

struct IdentityResult {
    unsigned number = 0;  // 1 to 13
    std::string title;
    bool holds = true;
    std::string detail;  // the first number that breaks it, or what was compared
};

std::vector<IdentityResult> check_identities(const SummaryText& summary, uint64_t ucycle_hz);
// "identity 3: row percentages: ok (64 rows)".
std::string text_of(const IdentityResult& result);
// Of the note on the clock; where there is none, that of the summaries that have no notes.
uint64_t ucycle_hz_of(const SummaryText& summary);

}  // namespace vartml::profiling
