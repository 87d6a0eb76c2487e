// SPDX-License-Identifier: Apache-2.0
// Parts of vartmltrace that no pipeline reaches at will.
#include <gtest/gtest.h>

#include <thread>

#include "gst/trace/objects.h"
#include "tests/support/comma_locale.h"
#include "tests/support/gst_main.h"
#include "tests/support/temp_dir.h"

using namespace vartml::gst::trace;
using vartml::FrameKey;

namespace {

TEST(TraceHistogram, FindsPercentilesWithinThreePerCent) {
    Histogram h;
    EXPECT_EQ(h.percentile(0.5), 0U);
    for (uint64_t i = 1; i <= 100'000; ++i) h.add(i * 1000);
    EXPECT_EQ(h.count(), 100'000U);
    for (const double share : {0.01, 0.5, 0.95, 0.99}) {
        const double wanted = share * 1e8;
        EXPECT_NEAR(static_cast<double>(h.percentile(share)), wanted, 0.03 * wanted);
    }
}

TEST(TraceHistogram, TakesEveryDuration) {
    Histogram h;
    for (unsigned bit = 0; bit < 64; ++bit) h.add(uint64_t{1} << bit);
    h.add(0);
    h.add(~uint64_t{0});
    EXPECT_EQ(h.count(), 66U);
    EXPECT_EQ(h.percentile(0), 0U);
    EXPECT_GE(h.percentile(1 - 1e-9), uint64_t{1} << 42);
}

struct Value {
    std::atomic<int> number{0};
    void reset() { number = 0; }
};

TEST(TracePointerTable, FindsWhatWasAddedAndNothingElse) {
    PointerTable<Value> table;
    std::vector<int> keys(5000);
    for (int& key : keys) table.add(&key)->number = int(&key - keys.data());
    for (int& key : keys) EXPECT_EQ(table.find(&key)->number, int(&key - keys.data()));
    EXPECT_EQ(table.add(&keys[7])->number, 7);
    table.remove(&keys[7]);
    EXPECT_EQ(table.find(&keys[7]), nullptr);
    EXPECT_EQ(table.add(&keys[7])->number, 0);
    EXPECT_EQ(table.find(&table), nullptr);
    EXPECT_EQ(table.find(nullptr), nullptr);
}

TEST(TracePointerTable, IsReadWhileItChanges) {
    PointerTable<Value> table;
    std::vector<int> keys(64);
    const int stays = 0;
    table.add(&stays)->number = 5;
    std::jthread writer([&](const std::stop_token& stop) {
        while (!stop.stop_requested()) {
            for (int& key : keys) table.add(&key);
            for (int& key : keys) table.remove(&key);
        }
    });
    for (int i = 0; i < 200'000; ++i) ASSERT_EQ(table.find(&stays)->number, 5);
}

TEST(TraceWaits, AreBetweenTwoThreads) {
    Waits waits;
    int thread, other;
    const FrameKey key(3, 77);
    EXPECT_FALSE(waits.leave(key, &other));
    waits.enter(key, 100, &thread);
    EXPECT_EQ(waits.leave(key, &other), 100U);
    EXPECT_FALSE(waits.leave(key, &other));
    waits.enter(key, 100, &thread);
    EXPECT_FALSE(waits.leave(key, &thread));
    // Frames that came later push one out.
    waits.enter(key, 100, &thread);
    waits.enter(FrameKey(3, 77 + Waits::capacity), 200, &thread);
    EXPECT_FALSE(waits.leave(key, &other));
    EXPECT_EQ(waits.leave(FrameKey(3, 77 + Waits::capacity), &other), 200U);
}

struct Pad {
    GstElement* element = gst_element_factory_make("identity", nullptr);
    GstPad* pad = gst_element_get_static_pad(element, "src");
    ~Pad() {
        gst_object_unref(pad);
        gst_object_unref(element);
    }
};

TEST(TraceObjects, TakeAnEventThatIsNullAndAPadThatIsLocked) {
    Objects objects({});
    const Pad p;
    objects.add_pad(p.element, p.pad);
    PadEntry* const entry = objects.pad(p.pad);
    ASSERT_NE(entry, nullptr);
    GST_OBJECT_LOCK(p.pad);
    objects.event(p.pad, nullptr);
    EXPECT_EQ(entry->stream, nullptr);
    GstEvent* const other = gst_event_new_eos();
    objects.event(p.pad, other);
    EXPECT_EQ(entry->stream, nullptr);
    GstEvent* const start = gst_event_new_stream_start("trace parts");
    objects.event(p.pad, start);
    GST_OBJECT_UNLOCK(p.pad);
    ASSERT_NE(entry->stream, nullptr);
    EXPECT_EQ(entry->stream.load()->id, "trace parts");
    EXPECT_TRUE(entry->is_origin);
    gst_event_unref(start);
    gst_event_unref(other);
}

TEST(TraceObjects, NameAnElementThatIsLockedLater) {
    Objects objects({"id*"});
    const Pad p;
    GST_OBJECT_LOCK(p.element);
    objects.add_pad(p.element, p.pad);
    objects.refresh(p.element);
    GST_OBJECT_UNLOCK(p.element);
    const ElementStats* const stats = objects.pad(p.pad)->stats();
    ASSERT_NE(stats, nullptr);
    objects.refresh(p.element);
    EXPECT_STREQ(stats->name.load().c_str(), GST_OBJECT_NAME(p.element));
    EXPECT_TRUE(stats->is_selected);
    gst_object_set_name(GST_OBJECT(p.element), "another");
    objects.refresh(p.element);
    EXPECT_STREQ(stats->name.load().c_str(), "another");
    EXPECT_FALSE(stats->is_selected);
}

TEST(TraceObjects, ForgetPadsThatGo) {
    Objects objects({});
    const Pad p;
    objects.add_pad(p.element, p.pad);
    const ElementEntry* const element = objects.pad(p.pad)->element;
    EXPECT_EQ(element->srcs, 1);
    objects.remove_pad(p.pad);
    EXPECT_EQ(objects.pad(p.pad), nullptr);
    EXPECT_EQ(element->srcs, 0);
    objects.remove_pad(p.pad);
    objects.forget(p.element);
}

// gst-launch sets the user's locale.
TEST(TraceSummary, IsTheSameInEveryLocale) {
    Objects objects({});
    const Pad p;
    objects.add_pad(p.element, p.pad);
    objects.pad(p.pad)->stats()->self.add(7);
    const std::string plain = summary_text(objects, {});
    EXPECT_NE(plain.find(" 0.0 "), std::string::npos) << plain;
    objects.pad(p.pad)->stats()->self.add(25'000);
    const vartml::test::CommaLocale comma;
    const std::string text = summary_text(objects, {});
    EXPECT_EQ(text.find(',', text.find("p50")), text.rfind(", 0 lost")) << text;
    EXPECT_NE(text.find(" 24.8 "), std::string::npos) << text;
}

TEST(TraceSummary, IsWrittenWholeOrNotAtAll) {
    const vartml::test::TempDir dir;
    const Objects objects({});
    const std::string text = summary_text(objects, {.written = 3, .lost = 2});
    EXPECT_NE(text.find("3 written, 2 lost"), std::string::npos) << text;
    EXPECT_TRUE(write_summary(dir / "a.txt", text).has_value());
    EXPECT_EQ(vartml::test::slurp(dir / "a.txt"), text);
    const auto failed = write_summary("/nowhere/a.txt", text);
    ASSERT_FALSE(failed.has_value());
    EXPECT_NE(failed.error().message.find("/nowhere/a.txt"), std::string::npos);
}

}  // namespace
