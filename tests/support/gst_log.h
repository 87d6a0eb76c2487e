// SPDX-License-Identifier: Apache-2.0
// What elements say in GStreamer's log.
#pragma once
#include <gst/gst.h>

#include <algorithm>
#include <mutex>
#include <string>
#include <vector>

namespace vartml::test {

// Lines of our elements' categories, all levels, while it lives; instead of the default output.
class GstLog {
public:
    GstLog() {
        gst_debug_set_active(TRUE);
        gst_debug_remove_log_function(gst_debug_log_default);
        gst_debug_add_log_function(collect, this, nullptr);
        gst_debug_set_threshold_for_name("vartml*", GST_LEVEL_TRACE);
    }
    ~GstLog() {
        gst_debug_set_threshold_for_name("vartml*", GST_LEVEL_NONE);
        gst_debug_remove_log_function_by_data(this);
        gst_debug_add_log_function(gst_debug_log_default, nullptr, nullptr);
    }
    GstLog(const GstLog&) = delete;
    GstLog& operator=(const GstLog&) = delete;

    // Lines of a category and a level that have all words.
    size_t count(const std::string& category, GstDebugLevel level,
                 const std::vector<std::string>& words) const {
        const std::lock_guard lock(mutex_);
        return size_t(std::ranges::count_if(lines_, [&](const Line& line) {
            return line.category == category && line.level == level &&
                   std::ranges::all_of(words, [&](const std::string& word) {
                       return line.text.find(word) != std::string::npos;
                   });
        }));
    }
    // For messages of failures.
    std::string of(const std::string& category) const {
        const std::lock_guard lock(mutex_);
        std::string text;
        for (const Line& line : lines_)
            if (line.category == category)
                text += std::string(gst_debug_level_get_name(line.level)) + ' ' + line.text + '\n';
        return text;
    }

private:
    struct Line {
        std::string category;
        GstDebugLevel level;
        std::string text;
    };
    static void collect(GstDebugCategory* category, GstDebugLevel level, const gchar*, const gchar*,
                        gint, GObject*, GstDebugMessage* message, gpointer self) {
        const char* const name = gst_debug_category_get_name(category);
        if (!g_str_has_prefix(name, "vartml")) return;
        auto& log = *static_cast<GstLog*>(self);
        const std::lock_guard lock(log.mutex_);
        log.lines_.push_back({name, level, gst_debug_message_get(message)});
    }

    mutable std::mutex mutex_;  // guards the lines
    std::vector<Line> lines_;
};

}  // namespace vartml::test
