// SPDX-License-Identifier: Apache-2.0
// Spellings of the sidecar's enumerations and numbers, shared by its reader and its writer.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <vartml/postprocess.h>

namespace vartml::vision {

std::string_view to_string(ResizeMode mode);  // stretch, letterbox, letterbox-top-left, crop
std::string_view to_string(Interpolation interpolation);
std::string_view to_string(ChannelOrder order);
std::optional<ResizeMode> parse_resize_mode(std::string_view text);
std::optional<Interpolation> parse_interpolation(std::string_view text);
std::optional<ChannelOrder> parse_channel_order(std::string_view text);

// The whole text is one finite number.
bool parse_number(std::string_view text, double& value);
bool parse_number(std::string_view text, int& value);
// Numbers separated by ',' or ';'.
bool parse_numbers(std::string_view text, std::vector<float>& values);
// Shortest text that reads back as the same float.
std::string number_text(float value);

// What a compiler sees in a graph, whoever wrote it.
ModelInfo::Input seen_in_graph(const ModelInfo::Input& input);
ModelInfo::Output seen_in_graph(const ModelInfo::Output& output);
// Whether the section says more than that; one that says nothing is somebody's word, too.
bool says_more_than_graph(const ModelInfo::Input& input);

// The first input that is a picture: 4-D with 1 or 3 channels where the layout has them, and not
// fed otherwise; nullptr where there is none.
const TensorInfo* find_picture_input(const ModelInfo& info, std::span<const TensorInfo> inputs);

// Whether a picture input takes one number per pixel, which is gray.
bool has_one_channel(const TensorInfo& picture);

// Content of a file of at most `limit_bytes`. Errors: not_found, io, bad_model (too large).
Result<std::string> read_text(const std::string& file, size_t limit_bytes);

}  // namespace vartml::vision
