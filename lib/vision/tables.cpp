// SPDX-License-Identifier: Apache-2.0
#include "lib/vision/tables.h"

#include <algorithm>
#include <numeric>

namespace vartml::vision {

namespace {

const ModelInfo::Output* named(const HeadRequest& request, const TensorInfo& output) {
    const auto& outputs = request.info.outputs;
    const auto it = std::ranges::find(outputs, output.name, &ModelInfo::Output::name);
    return it == outputs.end() ? nullptr : &*it;
}

bool has_role(std::string_view role, const Column& column) {
    return role == column.role || (role == "offsets" && column.role == "boxes");
}

bool fits(const Table& table, const Column& column) {
    return column.columns ? table.columns == column.columns : table.columns >= 2;
}

std::string columns_text(const Column& column) {
    return column.columns ? std::to_string(column.columns) : "C";
}

std::string input_text(const HeadRequest& request) {
    return "an input of " + std::to_string(request.width) + "x" + std::to_string(request.height);
}

// The sidecar's roles of outputs against the columns of the family.
Result<void> check_roles(const HeadRequest& request, std::span<const Column> wanted) {
    for (const TensorInfo& output : request.outputs) {
        const std::string_view role = role_of(request, output);
        if (role.empty()) continue;
        const auto column = std::ranges::find_if(
            wanted, [&](const Column& candidate) { return has_role(role, candidate); });
        const auto table = table_of(output);
        if (column != wanted.end() && table && fits(*table, *column)) continue;
        std::string roles;
        for (const Column& known : wanted) {
            roles += (roles.empty() ? "" : ", ") + std::string(known.role) + " [1,N," +
                     columns_text(known) + "]";
        }
        const std::string line = "x-vartml-role=" + std::string(role);
        return head_error(request, "dec-role",
                          "output '" + output.name + "' has the shape " +
                              shape_text(output.cpu.shape) + ", but " + source_of(request.info) +
                              " says " + line + "; correct that line in section [" + output.name +
                              "], this decoder reads " + roles,
                          output.name + " " + shape_text(output.cpu.shape) + " " + line, roles,
                          "x-vartml-role=…");
    }
    return {};
}

// The sidecar's strides of outputs against the rows that they give.
Result<void> check_strides(const HeadRequest& request, std::span<const Rows> levels) {
    for (const TensorInfo& output : request.outputs) {
        const ModelInfo::Output* line = named(request, output);
        const auto table = table_of(output);
        if (!line || !line->stride || !table) continue;
        const auto level = std::ranges::find(levels, *line->stride, &Rows::stride);
        const size_t expected = level == levels.end() ? 0 : level->rows;
        if (expected == table->rows) continue;
        const std::string key = "x-vartml-stride=" + std::to_string(*line->stride);
        return head_error(
            request, "dec-positions",
            "output '" + output.name + "' has " + std::to_string(table->rows) + " positions, but " +
                source_of(request.info) + " says " + key + ", where " + input_text(request) +
                " has " + std::to_string(expected) + "; correct that line in section [" +
                output.name + "]",
            std::to_string(table->rows), std::to_string(expected), "x-vartml-stride=…");
    }
    return {};
}

// Outputs of one level for each column; `absent` where there is none. Columns that look alike take
// the outputs in their order; more outputs than columns of a look are nobody's.
std::vector<size_t> match(const HeadRequest& request, std::span<const Column> wanted, size_t rows) {
    std::vector<size_t> found(wanted.size(), absent);
    const auto suits = [&](size_t output, const Column& column, bool by_role) {
        const auto table = table_of(request.outputs[output]);
        const std::string_view role = role_of(request, request.outputs[output]);
        return table && table->rows == rows && fits(*table, column) &&
               (by_role ? has_role(role, column) : role.empty());
    };
    for (const bool by_role : {true, false}) {
        for (size_t c = 0; c < wanted.size(); ++c) {
            if (found[c] != absent) continue;
            std::vector<size_t> candidates;
            size_t rivals = 0;
            for (size_t k = c; k < wanted.size(); ++k)
                rivals += found[k] == absent && wanted[k].columns == wanted[c].columns;
            for (size_t output = 0; output < request.outputs.size(); ++output) {
                if (std::ranges::find(found, output) == found.end() &&
                    suits(output, wanted[c], by_role)) {
                    candidates.push_back(output);
                }
            }
            const auto unlike = [&](size_t output) {
                return request.outputs[output].name.find(wanted[c].hint) == std::string::npos;
            };
            if (candidates.size() > rivals) std::erase_if(candidates, unlike);
            const bool certain = by_role ? candidates.size() == 1 : candidates.size() <= rivals;
            if (!candidates.empty() && certain) found[c] = candidates.front();
        }
    }
    return found;
}

bool is_complete(std::span<const size_t> found, std::span<const Column> wanted) {
    for (size_t c = 0; c < wanted.size(); ++c) {
        if (found[c] == absent && !wanted[c].optional) return false;
    }
    return true;
}

// Why a level has no complete set of outputs.
Error missing(const HeadRequest& request, std::span<const Column> wanted,
              std::span<const size_t> found, const Rows& level, const std::string& origin) {
    size_t lost = 0;
    while (found[lost] != absent || wanted[lost].optional) ++lost;
    const Column& column = wanted[lost];
    const auto of_this_shape = [&](bool of_rows) {
        return std::ranges::find_if(request.outputs, [&](const TensorInfo& output) {
            const auto table = table_of(output);
            const auto index = static_cast<size_t>(&output - request.outputs.data());
            if (std::ranges::find(found, index) != found.end()) return false;
            return table && fits(*table, column) && (!of_rows || table->rows == level.rows);
        });
    };
    const auto other = of_this_shape(false);
    if (other != request.outputs.end() && of_this_shape(true) == request.outputs.end()) {
        if (level.stride == 0) return rows_error(request, *other, level.rows, origin);
        return rows_error(request, *other, level.rows,
                          "stride " + std::to_string(level.stride) + " and " + origin);
    }
    return role_error(request, std::string(column.role),
                      "[1," + std::to_string(level.rows) + "," + columns_text(column) + "]");
}

// An output like the others that no level has takes positions that nobody would look at.
Result<void> check_left_over(const HeadRequest& request, std::span<const Column> wanted,
                             std::span<const Part> parts) {
    for (size_t i = 0; i < request.outputs.size(); ++i) {
        const TensorInfo& output = request.outputs[i];
        const auto table = table_of(output);
        const bool used = std::ranges::any_of(parts, [&](const Part& part) {
            return std::ranges::find(part.outputs, i) != part.outputs.end();
        });
        const auto alike = [&](const Column& column) { return table && fits(*table, column); };
        if (used || std::ranges::none_of(wanted, alike)) continue;
        const std::string found = output.name + " " + shape_text(output.cpu.shape);
        const std::string expected = std::to_string(parts.size()) + " strides";
        return head_error(request, "dec-positions",
                          "output '" + output.name + "' " + shape_text(output.cpu.shape) +
                              " belongs to none of the " + expected +
                              " of this model; name all of them with x-vartml-strides, or choose "
                              "another decoder",
                          found, expected, "x-vartml-strides=…");
    }
    return {};
}

}  // namespace

std::optional<Table> table_of(const TensorInfo& output) {
    const auto& shape = output.cpu.shape;
    if (shape.size() == 3 && shape[0] == 1) return Table{shape[1], shape[2]};
    if (shape.size() == 2) return Table{shape[0], shape[1]};
    return std::nullopt;
}

std::string_view role_of(const HeadRequest& request, const TensorInfo& output) {
    const ModelInfo::Output* line = named(request, output);
    return line ? std::string_view(line->role) : std::string_view();
}

Error rows_error(const HeadRequest& request, const TensorInfo& output, size_t expected,
                 const std::string& origin) {
    const auto table = table_of(output);
    const std::string rows = std::to_string(table ? table->rows : 0);
    return head_error(request, "dec-positions",
                      "output '" + output.name + "' has " + rows + " positions, but " +
                          input_text(request) + " gives " + std::to_string(expected) + " with " +
                          origin +
                          "; check x-vartml-strides and x-vartml-anchors, or choose another "
                          "decoder",
                      rows, std::to_string(expected), "x-vartml-strides=…");
}

Result<std::vector<Part>> find_parts(const HeadRequest& request, std::span<const Column> wanted,
                                     std::span<const Rows> levels, const std::string& origin) {
    if (auto checked = check_roles(request, wanted); !checked) return checked.error();
    const size_t all =
        std::accumulate(levels.begin(), levels.end(), size_t{0},
                        [](size_t sum, const Rows& level) { return sum + level.rows; });
    auto whole = match(request, wanted, all);
    if (is_complete(whole, wanted)) return std::vector<Part>{{0, all, std::move(whole)}};
    if (levels.size() < 2) return missing(request, wanted, whole, {0, all}, origin);
    if (auto checked = check_strides(request, levels); !checked) return checked.error();
    std::vector<Part> parts;
    size_t first = 0;
    for (const Rows& level : levels) {
        auto found = match(request, wanted, level.rows);
        if (!is_complete(found, wanted)) return missing(request, wanted, found, level, origin);
        for (size_t c = 0; !parts.empty() && c < wanted.size(); ++c) {
            if ((found[c] == absent) != (parts.front().outputs[c] == absent)) {
                return role_error(request, std::string(wanted[c].role),
                                  "[1," + std::to_string(level.rows) + "," +
                                      columns_text(wanted[c]) + "] of stride " +
                                      std::to_string(level.stride));
            }
        }
        parts.push_back({first, level.rows, std::move(found)});
        first += level.rows;
    }
    if (auto checked = check_left_over(request, wanted, parts); !checked) return checked.error();
    return parts;
}

size_t outputs_in(std::span<const Part> parts) {
    size_t count = 0;
    for (const Part& part : parts) {
        count +=
            part.outputs.size() - static_cast<size_t>(std::ranges::count(part.outputs, absent));
    }
    return count;
}

}  // namespace vartml::vision
