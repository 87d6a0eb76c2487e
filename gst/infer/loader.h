// SPDX-License-Identifier: Apache-2.0
// The models of an element: one is loaded at start, another may be swapped in for it, one that no
// frame needs for long is unloaded until the next, and lanes that no frame needs any more are
// ended, all of that in a thread where it takes long.
#pragma once
#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "gst/infer/context.h"

namespace vartml::gst::infer {

// What has the lane of the present model besides the loader, whose thread calls it with the stream
// lock of the sink pad: no frame, serialized event or serialized query comes meanwhile.
class LaneHolder {
public:
    // When the last frame came.
    virtual Clock::time_point last_frame() const = 0;
    // Whether nothing is between the pads.
    virtual bool at_rest() = 0;
    // It has no lane any more.
    virtual void let_go() = 0;

protected:
    ~LaneHolder() = default;
};

// Thread-safety: all members may be called concurrently unless noted. The mutex is held for members
// alone: nothing is loaded, posted or called under it, and no other lock is taken. The list of
// shared instances may be locked before. The thread takes the stream lock of the sink pad, before
// all others, where it unloads, and only if that is free.
class Loader final : private InstanceUser {
public:
    Loader(Context& context, LaneHolder& holder) : context_(context), holder_(holder) {}
    ~Loader() { (void)end(); }

    // Loads the model, in the thread where it must be compiled first. False after posting the
    // error.
    bool start();
    // Nothing is loaded any more. Lanes are there until end(), which gives the model of a swap that
    // no frame has seen, or that was not done yet, else "". Both with no frame on its way.
    void stop();
    std::string end();

    // The model is loaded and takes the place of the present one between two frames.
    void request_swap(const std::string& model);

    enum class State : uint8_t { none, loading, loaded, asleep, failed };
    // Waits until it is known what the model takes and gives, unless interrupted. False: it is not.
    bool wait();
    // Streaming thread: a frame came. Loads the model again if it was unloaded, and waits while
    // it is loaded, unless interrupted.
    State wake();
    void interrupt(bool interrupted);
    // Streaming thread: the frame from here on is the first of the new lane, where there is one.
    struct Change {
        std::shared_ptr<Lane> old_lane, new_lane;
        std::string model;
    };
    std::optional<Change> take_over();
    // Of the present model; while that is unloaded a lane that is asleep.
    std::shared_ptr<Lane> lane() const;
    // There is one, or it is being loaded.
    bool has_model() const;

    // Every frame of the model before has left.
    void finish_swap(Entry& entry);

    // Streaming thread: the caps of the frames. False: the lane does not suit them, `failure` says.
    bool set_caps(GstCaps* caps, Failure& failure);
    // What input-is-tensor=yes allows, a reference; nullptr: anything.
    GstCaps* narrow_caps() const;

private:
    // InstanceUser
    std::shared_ptr<Lane> make_lane(const std::shared_ptr<Instance>& instance,
                                    Failure& failure) override;
    void adopt(const std::string& model, std::shared_ptr<Lane> lane) override;

    void work();
    bool has_work() const;  // with the mutex, as the three below
    void wake_worker();
    void restart_idle();
    std::vector<std::shared_ptr<Lane>> fall_asleep();
    void load();
    std::shared_ptr<Lane> load_lane(const Lane* before, Failure& failure);
    std::shared_ptr<Lane> create_lane(const Settings& settings, unsigned epoch,
                                      const std::shared_ptr<Instance>& instance, Failure& failure);
    void unload();
    void swap(const std::string& model);
    void give_up_swap();
    static std::string own_sidecar_or(const std::string& in_use, const Instance& instance);
    std::string sidecar_of_next(const Instance& instance);
    bool suits_caps(const Lane& lane, Failure& failure) const;
    void narrow_to(const Lane& lane);  // with the mutex
    LoadProgress progress(const std::string& model);
    void post_loaded(const Lane& lane);
    void post_unloaded(const std::string& model, unsigned idle_ms);
    void post_compile(const std::string& model, int percent, const std::string& stage);
    void post_swapped(const Entry& entry);
    void post_swap_failed(const std::string& requested, const Failure& failure);

    Context& context_;
    LaneHolder& holder_;
    std::atomic<bool> cancel_{false};  // what is being loaded

    mutable std::mutex mutex_;  // guards all below
    std::condition_variable changed_;
    State state_ = State::none;
    bool interrupted_ = false;
    std::shared_ptr<Lane> lane_, next_lane_;  // next: from the next frame on; either may be asleep
    std::string next_model_;
    unsigned epoch_ = 0;
    GstCaps* caps_ = nullptr;    // of the sink
    GstCaps* narrow_ = nullptr;  // what input-is-tensor=yes allows
    // what the thread has to do
    std::thread worker_;
    bool load_wanted_ = false, worker_stops_ = false;
    std::optional<std::string> wanted_model_;  // stays where the element failed to start
    std::shared_ptr<Lane> announce_;           // loaded, and the application does not know yet
    std::vector<std::shared_ptr<Lane>> retired_;
    // When it is time to see whether frames still come; the end of time: never.
    Clock::time_point idle_at_ = Clock::time_point::max();
};

}  // namespace vartml::gst::infer
