// SPDX-License-Identifier: Apache-2.0
// Which cameras a worker has: the same answer in each worker, from the same lists.
#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace vartml::fleet {

/// Rendezvous weight (highest random weight, Thaler and Ravishankar 1998): where a worker comes or
/// goes, only its own cameras move.
uint64_t weight(std::string_view worker, std::string_view camera);

/// The smallest number f with sum(min(capacity, f)) >= cameras; where the capacities do not
/// suffice, the largest capacity.
size_t fair_share(size_t cameras, const std::vector<size_t>& capacities);

/// The cameras of `own` to give back so that `most` are left: those that others want more.
std::vector<std::string> surplus(const std::string& worker, const std::set<std::string>& own,
                                 size_t most);

/// The cameras of `free` in the order in which `worker` takes them: first those of which it has the
/// greatest weight of all `workers`.
std::vector<std::string> order_to_take(const std::string& worker,
                                       const std::vector<std::string>& workers,
                                       const std::vector<std::string>& free);

}  // namespace vartml::fleet
