// SPDX-License-Identifier: Apache-2.0
#include "lib/compiler/convex_groups.h"

#include <cstdint>
#include <functional>
#include <queue>

namespace vartml::compiler {
namespace {

// Numbers of groups.
class GroupSet {
public:
    bool contains(size_t group) const {
        return group / 64 < words_.size() && ((words_[group / 64] >> (group % 64)) & 1) != 0;
    }
    void insert(size_t group) {
        if (group / 64 >= words_.size()) words_.resize(group / 64 + 1);
        words_[group / 64] |= uint64_t{1} << (group % 64);
    }
    void erase(size_t group) {
        if (group / 64 < words_.size()) words_[group / 64] &= ~(uint64_t{1} << (group % 64));
    }
    // Whether anything is new.
    bool insert(const GroupSet& other) {
        if (other.words_.size() > words_.size()) words_.resize(other.words_.size());
        uint64_t added = 0;
        for (size_t i = 0; i < other.words_.size(); ++i) {
            added |= other.words_[i] & ~words_[i];
            words_[i] |= other.words_[i];
        }
        return added != 0;
    }

private:
    std::vector<uint64_t> words_;
};

class Grouping {
public:
    explicit Grouping(const std::vector<Item>& items)
        : items_(items), groups_(items.size(), no_group), earlier_(items.size()) {}

    std::vector<size_t> run() {
        for (size_t i = 0; i < items_.size(); ++i) {
            for (const size_t p : items_[i].before) {
                earlier_[i].insert(earlier_of(p));
                if (groups_[p] != no_group) earlier_[i].insert(groups_[p]);
            }
            if (items_[i].joins) join(i);
        }
        return std::move(groups_);
    }

private:
    // Groups from which a path leads to the item, not its own.
    const GroupSet& earlier_of(size_t item) const {
        return groups_[item] == no_group ? earlier_[item] : earlier_groups_[groups_[item]];
    }

    // Whether no path leaves the group and comes back with the item.
    bool may_enter(size_t item, size_t group) const {
        for (const size_t p : items_[item].before)
            if (groups_[p] != group && earlier_of(p).contains(group)) return false;
        return true;
    }

    void join(size_t item) {
        size_t group = 0;
        while (group < earlier_groups_.size() && !may_enter(item, group)) ++group;
        if (group == earlier_groups_.size()) earlier_groups_.emplace_back();
        groups_[item] = group;
        GroupSet more = std::move(earlier_[item]);
        more.erase(group);
        if (!earlier_groups_[group].insert(more)) return;
        // Whoever waits for the group now waits for these, too.
        const GroupSet& all = earlier_groups_[group];
        for (size_t i = 0; i < item; ++i)
            if (groups_[i] == no_group && earlier_[i].contains(group)) earlier_[i].insert(all);
        for (size_t g = 0; g < earlier_groups_.size(); ++g)
            if (g != group && earlier_groups_[g].contains(group)) earlier_groups_[g].insert(all);
    }

    const std::vector<Item>& items_;
    std::vector<size_t> groups_;
    std::vector<GroupSet> earlier_;         // per item of no group
    std::vector<GroupSet> earlier_groups_;  // per group
};

}  // namespace

std::vector<size_t> convex_groups(const std::vector<Item>& items) {
    return Grouping(items).run();
}

std::vector<size_t> execution_order(const std::vector<Item>& items,
                                    const std::vector<size_t>& groups) {
    std::vector<size_t> leader(items.size()), first_of_group;
    for (size_t i = 0; i < items.size(); ++i) {
        leader[i] = i;
        if (groups[i] == no_group) continue;
        if (groups[i] >= first_of_group.size()) first_of_group.resize(groups[i] + 1, no_group);
        if (first_of_group[groups[i]] == no_group) first_of_group[groups[i]] = i;
        leader[i] = first_of_group[groups[i]];
    }
    std::vector<size_t> waits_for(items.size(), 0);
    std::vector<std::vector<size_t>> readers(items.size());
    for (size_t i = 0; i < items.size(); ++i)
        for (const size_t p : items[i].before) {
            if (leader[p] == leader[i]) continue;
            ++waits_for[leader[i]];
            readers[leader[p]].push_back(leader[i]);
        }
    std::priority_queue<size_t, std::vector<size_t>, std::greater<>> ready;
    for (size_t i = 0; i < items.size(); ++i)
        if (leader[i] == i && waits_for[i] == 0) ready.push(i);
    std::vector<size_t> order;
    while (!ready.empty()) {
        const size_t next = ready.top();
        ready.pop();
        order.push_back(next);
        for (const size_t reader : readers[next])
            if (--waits_for[reader] == 0) ready.push(reader);
    }
    return order;
}

}  // namespace vartml::compiler
