// SPDX-License-Identifier: Apache-2.0
// Where the stamps of a device's steps belong: groups and operators of the descriptor.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "lib/device/device.h"
#include "lib/profiling/descriptor.h"

namespace vartml::runtime {

// A stamped program and what kind of partition it is.
struct ProfiledPartition {
    device::StampedProgram program;
    bool is_cpu = false;
};

// Thread-safety: immutable.
class OperatorMap {
public:
    static constexpr int32_t none = -1;

    struct Partition {
        uint16_t group = 0;
        int32_t sync = none;              // index of its sync in the group
        std::vector<int32_t> op_of_step;  // index in the group, or none
    };
    struct Group {
        uint16_t engine = 0;
        size_t num_ops = 0;
        std::vector<bool> has_barrier;  // per operator: the next one is its barrier
    };

    // Partitions in the order of execution. Without a descriptor, or with one below
    // level_operators, there are groups and no operators.
    OperatorMap(const std::vector<ProfiledPartition>& partitions,
                const profiling::Descriptor* descriptor);

    const std::vector<Partition>& partitions() const { return partitions_; }
    const std::vector<Group>& groups() const { return groups_; }
    // Steps whose operator the descriptor does not list; "" = none. A sentence.
    const std::string& unknown() const { return unknown_; }

private:
    void add_groups(const profiling::Descriptor& descriptor);
    Partition place(const ProfiledPartition& partition, const profiling::Descriptor& descriptor);

    std::vector<Partition> partitions_;
    std::vector<Group> groups_;
    std::string unknown_;
};

}  // namespace vartml::runtime
