// SPDX-License-Identifier: Apache-2.0
// vartmlgallery between a harness's pads: whom it names, how names are enrolled and kept.
#include "gst/gstvartmlgallery.h"

#include <gst/analytics/analytics.h>
#include <gst/check/gstharness.h>

#include <gtest/gtest.h>
#include <vartml/gallery.h>
#include <nlohmann/json.hpp>

#include <chrono>
#include <filesystem>
#include <thread>
#include <vector>

#include "gst/metadata/inference.h"
#include "gst/metadata/mtd.h"
#include "gst/publish/open.h"
#include "gst/publish/snapshot.h"
#include "tests/support/gst_main.h"
#include "tests/support/temp_dir.h"

namespace {

using namespace vartml::gst;
using vartml::test::slurp;
using vartml::test::spill;
using vartml::test::TempDir;

constexpr char frame_caps[] = "video/x-raw,format=GRAY8,width=200,height=100,framerate=10/1";

// An object; no looks: the second model did not see it on this frame.
struct Object {
    guint64 track;
    std::vector<float> looks;
    const char* label = "person";
};
const std::vector<float> ann = {1, 0, 0}, bob = {0, 1, 0}, like_ann = {0.8f, 0.6f, 0},
                         nobody = {0, 0, 1};

class GalleryElement : public testing::Test {
protected:
    void SetUp() override { make(); }
    void TearDown() override { unmake(); }
    void make() {
        element_ = GST_ELEMENT(gst_object_ref_sink(g_object_new(GST_TYPE_VARTML_GALLERY, nullptr)));
        bus_ = gst_bus_new();
        gst_element_set_bus(element_, bus_);
    }
    void unmake() {
        if (harness_) gst_harness_teardown(harness_);
        harness_ = nullptr;
        gst_element_set_bus(element_, nullptr);
        gst_object_unref(element_);
        gst_object_unref(bus_);
    }
    void set(const char* name, const std::string& value) {
        gst_util_set_object_arg(G_OBJECT(element_), name, value.c_str());
    }
    void open() {
        harness_ = gst_harness_new_with_element(element_, "sink", "src");
        gst_harness_set_src_caps_str(harness_, frame_caps);
    }
    static void add_looks(GstBuffer* buffer, const std::vector<float>& looks,
                          std::optional<guint> od, guint inference) {
        GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
        GstAnalyticsMtd embedding;
        ASSERT_TRUE(add_embedding(meta, looks, &embedding));
        const auto relate = [&](guint a, guint b) {
            gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO, a, b);
        };
        if (od) relate(*od, embedding.id);
        relate(embedding.id, inference);
    }
    GstBuffer* frame(const std::vector<Object>& objects, const std::vector<float>& whole = {}) {
        GstBuffer* buffer = gst_buffer_new_allocate(nullptr, 200 * 100, nullptr);
        GST_BUFFER_PTS(buffer) = pts_;
        GST_BUFFER_DURATION(buffer) = duration_;
        pts_ += GST_SECOND / 10;
        auto record = std::make_shared<InferenceRecord>();
        record->model = "reid";
        record->model_hash = hash_;
        Inference inference;
        inference.record = record;
        if (detected_) {
            Inference detector;
            detector.record = std::make_shared<InferenceRecord>();
            EXPECT_TRUE(add_inference(buffer, detector, 8));
        }
        EXPECT_TRUE(add_inference(buffer, inference, 8));
        GstAnalyticsMtd mtd;
        get_inference(buffer, detected_ ? 1 : 0, &mtd);
        GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(buffer);
        int x = 0;
        for (const Object& o : objects) {
            GstAnalyticsMtd od, track;
            gst_analytics_relation_meta_add_od_mtd(meta, g_quark_from_string(o.label), x, 0, 20, 40,
                                                   0.9f, &od);
            x += 30;
            if (o.track) {
                gst_analytics_relation_meta_add_tracking_mtd(meta, o.track, 0, &track);
                gst_analytics_relation_meta_set_relation(meta, GST_ANALYTICS_REL_TYPE_RELATE_TO,
                                                         od.id, track.id);
            }
            if (!o.looks.empty()) add_looks(buffer, o.looks, od.id, mtd.id);
        }
        if (!whole.empty() && !hash_of_whole_.empty()) {
            record = std::make_shared<InferenceRecord>();
            record->model_hash = hash_of_whole_;
            inference.record = record;
            EXPECT_TRUE(add_inference(buffer, inference, 8));
            get_inference(buffer, detected_ ? 2 : 1, &mtd);
        }
        if (!whole.empty()) add_looks(buffer, whole, std::nullopt, mtd.id);
        return buffer;
    }
    // The names of the objects of a frame, one by one, "-" where there is none; then the picture's.
    std::string names(const std::vector<Object>& objects, const std::vector<float>& whole = {}) {
        if (gst_harness_push(harness_, frame(objects, whole)) != GST_FLOW_OK) return "error";
        GstBuffer* out = gst_harness_pull(harness_);
        GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(out);
        gpointer state = nullptr;
        GstAnalyticsMtd od, cls;
        std::string all;
        std::vector<guint> of_objects;
        while (gst_analytics_relation_meta_iterate(meta, &state,
                                                   gst_analytics_od_mtd_get_mtd_type(), &od)) {
            const bool named = gst_analytics_relation_meta_get_direct_related(
                meta, od.id, GST_ANALYTICS_REL_TYPE_RELATE_TO, gst_analytics_cls_mtd_get_mtd_type(),
                nullptr, &cls);
            if (named) of_objects.push_back(cls.id);
            all += (all.empty() ? "" : " ") + text(named ? &cls : nullptr);
        }
        state = nullptr;
        while (gst_analytics_relation_meta_iterate(meta, &state,
                                                   gst_analytics_cls_mtd_get_mtd_type(), &cls)) {
            if (std::ranges::find(of_objects, cls.id) == of_objects.end())
                all += (all.empty() ? "picture " : " picture ") + text(&cls);
        }
        gst_buffer_unref(out);
        return all;
    }
    static std::string text(const GstAnalyticsMtd* cls) {
        if (!cls) return "-";
        char level[16];
        g_snprintf(level, sizeof level, " %.2f", double{gst_analytics_cls_mtd_get_level(cls, 0)});
        return g_quark_to_string(gst_analytics_cls_mtd_get_quark(cls, 0)) + std::string(level);
    }
    std::string pop(GstMessageType type) {
        GstMessage* message = gst_bus_pop_filtered(bus_, type);
        if (!message) return "";
        const GstStructure* details = gst_message_get_structure(message);
        if (type == GST_MESSAGE_ERROR) gst_message_parse_error_details(message, &details);
        if (type == GST_MESSAGE_WARNING) gst_message_parse_warning_details(message, &details);
        const std::string id = type == GST_MESSAGE_ELEMENT
                                   ? gst_structure_get_name(details)
                                   : gst_structure_get_string(details, "id");
        gst_message_unref(message);
        return id;
    }
    guint64 stat(const char* name) {
        GstStructure* stats = nullptr;
        g_object_get(element_, "stats", &stats, nullptr);
        guint64 value = G_MAXUINT64;
        gst_structure_get_uint64(stats, name, &value);
        gst_structure_free(stats);
        return value;
    }

    GstHarness* harness_ = nullptr;
    GstElement* element_ = nullptr;
    GstBus* bus_ = nullptr;
    GstClockTime pts_ = 0, duration_ = GST_CLOCK_TIME_NONE;
    std::string hash_ = "abc";
    std::string hash_of_whole_;  // where another model sees the whole picture
    bool detected_ = false;      // by a model before
    TempDir dir_;
};

TEST_F(GalleryElement, NamesThoseThatWereEnrolledWhileItRuns) {
    open();
    EXPECT_EQ(names({{0, ann}}), "-");
    set("enrol", "ann");
    EXPECT_EQ(names({{0, ann}}), "ann 1.00");
    EXPECT_EQ(pop(GST_MESSAGE_ELEMENT), "vartml-gallery-enrolled");
    g_signal_emit_by_name(element_, "enrol", "bob", guint64{7});
    EXPECT_EQ(names({{0, ann}, {6, nobody}}), "ann 1.00 -");  // track 7 is not there yet
    EXPECT_EQ(names({{7, bob}, {6, nobody}}), "bob 1.00 -");
    EXPECT_EQ(names({{0, like_ann}, {0, nobody}, {0, bob}}), "ann 0.80 - bob 1.00");
    GValue list = G_VALUE_INIT;
    g_value_init(&list, GST_TYPE_ARRAY);
    g_object_get_property(G_OBJECT(element_), "names", &list);
    ASSERT_EQ(gst_value_array_get_size(&list), 2u);
    EXPECT_STREQ(g_value_get_string(gst_value_array_get_value(&list, 1)), "bob");
    g_value_unset(&list);
    EXPECT_EQ(stat("enrolled"), 2u);
    EXPECT_EQ(stat("unknown"), 4u);
}

TEST_F(GalleryElement, KnowsNobodyBelowTheThreshold) {
    set("enrol", "ann");
    set("threshold", "0.9");
    open();
    EXPECT_EQ(names({{0, ann}}), "ann 1.00");
    EXPECT_EQ(names({{0, like_ann}}), "-");
    set("threshold", "0.7");
    EXPECT_EQ(names({{0, like_ann}}), "ann 0.80");
    set("unknown", "stranger");
    EXPECT_EQ(names({{0, nobody}}), "stranger 0.00");
}

TEST_F(GalleryElement, GivesATrackItsNameOnFramesWithoutEmbedding) {
    set("enrol", "ann");
    open();
    EXPECT_EQ(names({{3, ann}}), "ann 1.00");
    EXPECT_EQ(names({{3, {}}, {4, {}}}), "ann 1.00 -");
    // Its looks are a mean: one odd frame does not take the name.
    EXPECT_EQ(names({{3, {0.6f, 0, 0.8f}}}).substr(0, 3), "ann");
    gst_harness_push_event(harness_, gst_event_new_stream_start("another"));
    GstSegment segment;
    gst_segment_init(&segment, GST_FORMAT_TIME);
    GstCaps* caps = gst_caps_from_string(frame_caps);
    gst_harness_push_event(harness_, gst_event_new_caps(caps));
    gst_caps_unref(caps);
    gst_harness_push_event(harness_, gst_event_new_segment(&segment));
    EXPECT_EQ(names({{3, {}}}), "-");
}

// A track of another tracker with the same number.
TEST_F(GalleryElement, KnowsATrackByItsLabelToo) {
    set("enrol", "ann");
    open();
    EXPECT_EQ(names({{3, ann, "person"}, {3, {}, "car"}}), "ann 1.00 -");
    EXPECT_EQ(names({{3, {}, "car"}, {3, {}, "person"}}), "- ann 1.00");
}

// Whichever way time goes, and where frames do not tell it.
TEST_F(GalleryElement, ForgetsATrackThatWasNotSeenForLong) {
    enum Kind { forwards, backwards, untimed };
    for (const Kind kind : {forwards, backwards, untimed}) {
        SCOPED_TRACE(kind);
        set("enrol", "ann");
        open();
        GstSegment segment;
        gst_segment_init(&segment, GST_FORMAT_TIME);
        segment.rate = kind == backwards ? -1 : 1;
        segment.stop = 1000 * GST_SECOND;
        ASSERT_TRUE(gst_harness_push_event(harness_, gst_event_new_segment(&segment)));
        // What a frame `s` seconds after the first is named.
        const auto after = [&](GstClockTime s, GstClockTime lasts, const Object& object) {
            duration_ = lasts * GST_SECOND;
            pts_ = kind == untimed     ? GST_CLOCK_TIME_NONE
                   : kind == backwards ? (500 - s) * GST_SECOND
                                       : s * GST_SECOND;
            return names({object});
        };
        EXPECT_EQ(after(0, 50, {3, ann}), "ann 1.00");
        EXPECT_EQ(after(50, 1, {3, {}}), "ann 1.00");
        EXPECT_EQ(after(51, 70, {4, {}}), "-");
        EXPECT_EQ(after(121, 1, {3, {}}), "-");
        unmake();
        make();
    }
}

TEST_F(GalleryElement, ForgetsTheNameOfATrack) {
    set("enrol", "ann");
    open();
    EXPECT_EQ(names({{3, ann}}), "ann 1.00");
    EXPECT_EQ(names({{3, {}}}), "ann 1.00");
    g_signal_emit_by_name(element_, "forget", "ann");
    EXPECT_EQ(names({{3, {}}}), "-");
}

TEST_F(GalleryElement, NamesTheWholePictureToo) {
    set("enrol", "ann");
    open();
    EXPECT_EQ(names({}, ann), "picture ann 1.00");
    EXPECT_EQ(names({{1, nobody}}, like_ann), "- picture ann 0.80");
}

TEST_F(GalleryElement, RelatesANameToTheInferenceThatItIsOf) {
    detected_ = true;
    open();
    set("enrol", "ann");
    EXPECT_EQ(names({{0, ann}}), "ann 1.00");
    ASSERT_EQ(gst_harness_push(harness_, frame({{0, ann}})), GST_FLOW_OK);
    GstBuffer* out = gst_harness_pull(harness_);
    GstAnalyticsRelationMeta* meta = gst_buffer_get_analytics_relation_meta(out);
    gpointer state = nullptr;
    GstAnalyticsMtd cls, inferences[2];
    ASSERT_TRUE(gst_analytics_relation_meta_iterate(meta, &state,
                                                    gst_analytics_cls_mtd_get_mtd_type(), &cls));
    for (unsigned i = 0; i < 2; ++i) {
        ASSERT_TRUE(get_inference(out, i, &inferences[i]));
        EXPECT_EQ(gst_analytics_relation_meta_get_relation(meta, cls.id, inferences[i].id),
                  i == 0 ? GST_ANALYTICS_REL_TYPE_NONE : GST_ANALYTICS_REL_TYPE_RELATE_TO)
            << i;
    }
    gst_buffer_unref(out);
}

TEST_F(GalleryElement, KeepsTheGalleryInAFile) {
    const std::string file = dir_ / "people.txt";
    set("location", file);
    set("enrol", "ann");
    open();
    EXPECT_EQ(names({{0, ann}}), "ann 1.00");
    EXPECT_EQ(slurp(file), "vartml.gallery/1\tabc\t3\nann\t1 0 0\n");
    g_signal_emit_by_name(element_, "enrol", "bob", guint64{0});
    EXPECT_EQ(names({{0, bob}}), "bob 1.00");
    unmake();
    make();
    set("location", file);
    open();
    EXPECT_EQ(names({{0, bob}, {0, like_ann}}), "bob 1.00 ann 0.80");
    g_signal_emit_by_name(element_, "forget", "ann");
    EXPECT_EQ(names({{0, bob}, {0, like_ann}}), "bob 1.00 bob 0.60");
    EXPECT_EQ(slurp(file), "vartml.gallery/1\tabc\t3\nbob\t0 1 0\n");
}

TEST_F(GalleryElement, KeepsWhomAnotherElementHasEnrolledInTheFile) {
    const std::string file = dir_ / "people.txt";
    set("location", file);
    open();
    EXPECT_EQ(names({{0, ann}}), "-");
    spill(file, "vartml.gallery/1\tabc\t3\nbob\t0 1 0\n");  // another camera's
    set("enrol", "ann");
    EXPECT_EQ(names({{0, ann}, {0, {}}}), "ann 1.00 -");
    EXPECT_EQ(slurp(file), "vartml.gallery/1\tabc\t3\nbob\t0 1 0\nann\t1 0 0\n");
    EXPECT_EQ(names({{0, bob}}), "bob 1.00");
    spill(file, "vartml.gallery/1\tabc\t3\nbob\t0 1 0\nann\t1 0 0\neve\t0 0 1\n");
    g_signal_emit_by_name(element_, "forget", "bob");
    EXPECT_EQ(gst_harness_push(harness_, gst_buffer_new_allocate(nullptr, 200 * 100, nullptr)),
              GST_FLOW_OK);  // a frame on which nobody is
    EXPECT_EQ(slurp(file), "vartml.gallery/1\tabc\t3\nann\t1 0 0\neve\t0 0 1\n");
    spill(file, "nothing of the kind\n");
    set("enrol", "bob");
    EXPECT_EQ(names({{0, bob}}), "error");
    EXPECT_EQ(pop(GST_MESSAGE_ERROR), "gallery-file");
    EXPECT_EQ(slurp(file), "nothing of the kind\n");
}

TEST_F(GalleryElement, EnrolsIntoAFileThatOthersWriteAtTheSameTime) {
    const std::string file = dir_ / "people.txt";
    constexpr size_t each = 40;
    std::vector<std::thread> cameras;
    for (const std::string camera : {"a", "b", "c"}) {
        std::vector<GstBuffer*> frames;
        for (size_t i = 0; i < each; ++i) frames.push_back(frame({{0, ann}}));
        cameras.emplace_back([file, camera, frames] {
            GstElement* const element =
                GST_ELEMENT(gst_object_ref_sink(g_object_new(GST_TYPE_VARTML_GALLERY, nullptr)));
            g_object_set(element, "location", file.c_str(), nullptr);
            GstHarness* const harness = gst_harness_new_with_element(element, "sink", "src");
            gst_harness_set_src_caps_str(harness, frame_caps);
            for (GstBuffer* const frame : frames) {
                const std::string name = camera + std::to_string(&frame - &frames[0]);
                g_object_set(element, "enrol", name.c_str(), nullptr);
                EXPECT_EQ(gst_harness_push(harness, frame), GST_FLOW_OK);
            }
            gst_harness_teardown(harness);
            gst_object_unref(element);
        });
    }
    for (std::thread& camera : cameras) camera.join();
    const std::string text = slurp(file);
    EXPECT_EQ(std::ranges::count(text, '\n'), 1 + std::ssize(cameras) * ptrdiff_t{each});
    EXPECT_FALSE(std::filesystem::exists(dir_ / ".people.txt.lock"));
}

TEST_F(GalleryElement, WritesWhereALinkLeads) {
    std::filesystem::create_symlink("people.txt", dir_ / "link");  // which nobody has made yet
    for (const char* name : {"ann", "bob"}) {
        set("location", dir_ / "link");
        set("enrol", name);
        open();
        EXPECT_EQ(names({{0, name == std::string("ann") ? ann : bob}}),
                  std::string(name) + " 1.00");
        unmake();
        make();
    }
    EXPECT_TRUE(std::filesystem::is_symlink(dir_ / "link"));
    EXPECT_EQ(slurp(dir_ / "people.txt"), "vartml.gallery/1\tabc\t3\nann\t1 0 0\nbob\t0 1 0\n");
}

TEST_F(GalleryElement, FailsForWantOfALockOnlyWhereItHasSomethingToWrite) {
    std::filesystem::create_directory(dir_ / ".people.txt.lock");  // no file can be made there
    set("location", dir_ / "people.txt");
    open();
    g_signal_emit_by_name(element_, "forget", "eve");
    EXPECT_EQ(names({{0, ann}}), "-");
    EXPECT_EQ(pop(GST_MESSAGE_WARNING), "gallery-enrol");
    set("enrol", "ann");
    EXPECT_EQ(names({{0, ann}}), "error");
    EXPECT_EQ(pop(GST_MESSAGE_ERROR), "gallery-file");
    EXPECT_EQ(stat("enrolled"), 0u);
    EXPECT_FALSE(std::filesystem::exists(dir_ / "people.txt"));
}

TEST_F(GalleryElement, StopsWhileAnotherHasTheLock) {
    const std::string file = dir_ / "people.txt";
    const auto lock = vartml::Gallery::lock(file);
    ASSERT_TRUE(lock);
    set("location", file);
    set("enrol", "ann");
    open();
    GstBuffer* const picture = frame({{0, ann}});
    std::thread pictures([this, picture] { gst_harness_push(harness_, picture); });
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    gst_element_set_state(element_, GST_STATE_NULL);
    pictures.join();
    EXPECT_EQ(pop(GST_MESSAGE_ERROR), "");
    EXPECT_FALSE(std::filesystem::exists(file));
}

TEST_F(GalleryElement, EnrolsNobodyWhereItIsNotClearWhom) {
    open();
    set("enrol", "ann");
    EXPECT_EQ(names({{1, ann}, {2, bob}}), "- -");
    EXPECT_EQ(pop(GST_MESSAGE_WARNING), "gallery-enrol");
    set("enrol", "ann@1");
    EXPECT_EQ(names({{1, ann}, {2, bob}}), "ann 1.00 -");
    g_signal_emit_by_name(element_, "forget", "carl");
    EXPECT_EQ(names({{1, ann}}), "ann 1.00");
    EXPECT_EQ(pop(GST_MESSAGE_WARNING), "gallery-enrol");
}

TEST_F(GalleryElement, NamesTheClassesThatAreAskedFor) {
    set("classes", "person");
    set("enrol", "ann");
    open();
    EXPECT_EQ(names({{0, ann}, {0, ann, "dog"}}), "ann 1.00 -");
}

TEST_F(GalleryElement, RefusesAGalleryOfAnotherModel) {
    const std::string file = dir_ / "people.txt";
    spill(file, "vartml.gallery/1\tother\t3\nann\t1 0 0\n");
    set("location", file);
    open();
    EXPECT_EQ(names({{0, ann}}), "error");
    EXPECT_EQ(pop(GST_MESSAGE_ERROR), "gallery-model");
}

// Vectors of two models have nothing in common, whenever the second one comes.
TEST_F(GalleryElement, RefusesAnotherModelThatTakesOver) {
    open();
    set("enrol", "ann");
    EXPECT_EQ(names({{0, ann}}), "ann 1.00");
    hash_ = "swapped in";
    EXPECT_EQ(names({{0, ann}}), "error");
    EXPECT_EQ(pop(GST_MESSAGE_ERROR), "gallery-model");
}

// Two elements behind different models, of which the other enrolled first.
TEST_F(GalleryElement, RefusesAGalleryThatAnotherModelMadeMeanwhile) {
    const std::string file = dir_ / "people.txt";
    set("location", file);
    open();
    EXPECT_EQ(names({{0, ann}}), "-");
    spill(file, "vartml.gallery/1\tother\t3\neve\t1 0 0\n");
    set("enrol", "ann");
    EXPECT_EQ(names({{0, ann}}), "error");
    EXPECT_EQ(pop(GST_MESSAGE_ERROR), "gallery-model");
    EXPECT_EQ(slurp(file), "vartml.gallery/1\tother\t3\neve\t1 0 0\n");
}

// Such as a model of faces beside one of people.
TEST_F(GalleryElement, LeavesOutWhatAnotherModelSawBesideItsOwn) {
    set("enrol", "ann");
    open();
    EXPECT_EQ(names({{1, ann}}), "ann 1.00");
    hash_of_whole_ = "faces";
    EXPECT_EQ(names({{1, ann}}, ann), "ann 1.00");
    EXPECT_EQ(pop(GST_MESSAGE_WARNING), "gallery-model");
    EXPECT_EQ(names({{1, like_ann}}, ann), "ann 0.99");  // of the mean of what track 1 looked like
    EXPECT_EQ(names({}, ann), "");                       // its model saw nobody
    EXPECT_EQ(pop(GST_MESSAGE_WARNING), "");
}

// The first track of the next stream is somebody else.
TEST_F(GalleryElement, EnrolsNoTrackOfAnotherStream) {
    open();
    set("enrol", "ann@1");
    EXPECT_EQ(names({{2, bob}}), "-");
    gst_harness_push_event(harness_, gst_event_new_stream_start("the next"));
    EXPECT_EQ(pop(GST_MESSAGE_WARNING), "gallery-enrol");
    EXPECT_EQ(names({{1, bob}}), "-");
}

TEST_F(GalleryElement, RefusesAFileThatIsNone) {
    const std::string file = dir_ / "people.txt";
    spill(file, "ann 1 0 0\n");
    set("location", file);
    EXPECT_EQ(gst_element_set_state(element_, GST_STATE_PAUSED), GST_STATE_CHANGE_FAILURE);
    EXPECT_EQ(pop(GST_MESSAGE_ERROR), "gallery-file");
    gst_element_set_state(element_, GST_STATE_NULL);
}

TEST_F(GalleryElement, IsInTheRecord) {
    set("enrol", "ann");
    open();
    ASSERT_EQ(gst_harness_push(harness_, frame({{5, ann}})), GST_FLOW_OK);
    GstBuffer* out = gst_harness_pull(harness_);
    vartml::FrameRecord record;
    SnapshotReader reader;
    reader.read(out, include_objects | include_classes | include_tracks, record);
    vartml::PublishLine line;
    vartml::format_frame(record, "run", line);
    gst_buffer_unref(out);
    const auto json = nlohmann::json::parse(line.text);
    EXPECT_EQ(json["objects"][0]["track"], 5);
    EXPECT_EQ(json["objects"][0]["attributes"][0]["label"], "ann");
    EXPECT_EQ(json["objects"][0]["attributes"][0]["model"], "reid");
}

TEST_F(GalleryElement, WithoutEmbeddingsIsAWarning) {
    open();
    for (int i = 0; i < 40; ++i) {
        ASSERT_EQ(gst_harness_push(harness_, gst_buffer_new_allocate(nullptr, 100, nullptr)),
                  GST_FLOW_OK);
        gst_buffer_unref(gst_harness_pull(harness_));
    }
    EXPECT_EQ(pop(GST_MESSAGE_WARNING), "gallery-idle");
}

}  // namespace
