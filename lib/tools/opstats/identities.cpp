// SPDX-License-Identifier: Apache-2.0
#include "lib/tools/opstats/identities.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>

#include "lib/trace/text.h"

namespace vartml::profiling {
namespace {

// Half a unit of the second decimal, and what a sum of doubles may add.
constexpr double cents = 0.0051;

// Collects the comparisons of one identity; the first that fails is kept.
class Check {
public:
    Check(const SummaryText& text, uint64_t hz) : summary(text), ucycle_hz(hz) {}

    void near(const std::string& what, const Real& found, double expected, double tolerance) {
        if (!found) return;
        ++compared_;
        if (!(std::abs(*found - expected) <= tolerance))
            fail(what + format_text(" is %.9g, expected %.9g", *found, expected));
    }
    // As printed with %g.
    void six_digits(const std::string& what, const Real& found, double expected) {
        const double unit = expected > 0 ? std::pow(10.0, std::floor(std::log10(expected)) - 5) : 0;
        near(what, found, expected, 0.51 * unit);
    }
    void equal(const std::string& what, const Count& found, const Count& expected) {
        ++compared_;
        const auto text = [](const Count& c) { return c ? std::to_string(*c) : "N/A"; };
        if (found != expected) fail(what + " is " + text(found) + ", expected " + text(expected));
    }
    void that(bool holds, const std::string& what) {
        ++compared_;
        if (!holds) fail(what);
    }
    void note(const std::string& text) { notes_ += (notes_.empty() ? "" : ", ") + text; }

    IdentityResult result(unsigned number, const char* title) const {
        const std::string ok = notes_.empty() ? format_text("%zu compared", compared_) : notes_;
        return {number, title, fault_.empty(), fault_.empty() ? ok : fault_};
    }

    const SummaryText& summary;
    uint64_t ucycle_hz;

private:
    void fail(const std::string& what) {
        if (fault_.empty()) fault_ = what;
    }
    std::string fault_, notes_;
    size_t compared_ = 0;
};

std::string name(const SummaryCore& core) {
    return "c" + std::to_string(core.index);
}
std::string name(const SummaryCore& core, unsigned thread) {
    return name(core) + "t" + std::to_string(thread);
}
std::string name(const SummaryRow& row) {
    return "c" + std::to_string(row.core) + " '" + row.details + "'";
}

Count most(const Count& a, const Count& b) {
    return a && b ? std::max(*a, *b) : a ? a : b;
}

double seconds(const Check& c) {
    return static_cast<double>(c.summary.total_ucycles) / static_cast<double>(c.ucycle_hz);
}

void check_seconds(Check& c) {
    c.six_digits("seconds of batch/s", c.summary.batch_seconds, seconds(c));
    c.six_digits("seconds of inf/s", c.summary.inference_seconds, seconds(c));
}

void check_frequency(Check& c) {
    for (const SummaryCore& core : c.summary.cores) {
        if (!core.total_pcycles || core.total_ucycles == 0) continue;
        const double us =
            static_cast<double>(core.total_ucycles) / (static_cast<double>(c.ucycle_hz) / 1e6);
        c.near(name(core) + " effective frequency", core.effective_mhz,
               static_cast<double>(*core.total_pcycles) / us, 0.01);
    }
}

void check_percentages(Check& c) {
    const auto percent = [&](const std::string& what, const Real& found, const Count& part,
                             const Count& whole) {
        if (!part || !whole || *whole == 0) return;
        c.near(what, found, 100.0 * static_cast<double>(*part) / static_cast<double>(*whole),
               cents);
    };
    for (const SummaryCore& core : c.summary.cores)
        for (const SummaryRow& r : core.rows) {
            percent(name(r) + " ucycles(%)", r.ucycles_percent, r.ucycles, core.total_ucycles);
            percent(name(r) + " pcycles(%)", r.pcycles_percent, r.pcycles, core.total_pcycles);
        }
}

// The printed KB are rounded to two decimals, which is much of a small number.
void check_rate(Check& c, const std::string& what, const Real& found, const Count& cycles,
                double kb) {
    if (!found || !cycles) return;
    const auto whole = static_cast<double>(*cycles);
    const double least = whole / (kb + cents) - cents;
    const double most = kb > cents ? whole / (kb - cents) + cents : HUGE_VAL;
    const std::string expected = most == HUGE_VAL ? format_text("at least %.9g", least)
                                                  : format_text("from %.9g to %.9g", least, most);
    c.that(*found >= least && *found <= most,
           what + format_text(" is %.9g, expected ", *found) + expected);
}

void check_rates(Check& c) {
    for (const SummaryCore& core : c.summary.cores)
        for (const SummaryRow& r : core.rows) {
            if (!r.out_kb) continue;
            check_rate(c, name(r) + " ucycles/KB", r.ucycles_per_kb, r.ucycles, *r.out_kb);
            check_rate(c, name(r) + " pcycles/KB", r.pcycles_per_kb, r.pcycles, *r.out_kb);
        }
}

// An engine of a core: its threads with stamps of their own, and the sums over its rows.
struct Engine {
    std::vector<const SummaryThread*> threads;
    uint64_t ucycles = 0, pcycles = 0, all_ucycles = 0;
    uint64_t without_pcycles = 0;  // ucycles of rows whose pcycles are not told
    size_t rows = 0;
};

std::map<std::string, Engine> engines_of(const SummaryCore& core) {
    std::map<std::string, Engine> engines;
    for (const SummaryThread& t : core.threads)
        if (t.utilization) engines[t.engine].threads.push_back(&t);
    for (const SummaryRow& r : core.rows) {
        Engine& e = engines[std::string(engine_of(r))];
        e.all_ucycles += r.ucycles.value_or(0);
        if (is_wait(r)) continue;
        e.ucycles += r.ucycles.value_or(0);
        e.pcycles += r.pcycles.value_or(0);
        if (!r.pcycles) e.without_pcycles += r.ucycles.value_or(0);
        ++e.rows;
    }
    return engines;
}

// Share of the engine's rows in a thread, in percent, and what rounding may do to it. A thread that
// sleeps burns no pcycles, so that our own summaries count time.
struct Share {
    double percent = 0, tolerance = 0;
    double untold = 0;  // may be more by this
};

std::optional<Share> share_of(const SummaryText& s, const Engine& e, const SummaryThread& t) {
    const bool is_ours = !s.notes.empty() && s.notes.front().text.starts_with("vartml-opstats ");
    if (!is_ours) {
        if (!t.pcycles || *t.pcycles == 0) return std::nullopt;
        // Tools that name the specialization count what an engine does for operators whose pcycles
        // they do not print; older ones do not.
        const double untold =
            s.specialization && t.ucycles != 0
                ? 100.0 * static_cast<double>(e.without_pcycles) / static_cast<double>(t.ucycles)
                : 0;
        return Share{100.0 * static_cast<double>(e.pcycles) / static_cast<double>(*t.pcycles), 0.01,
                     untold};
    }
    if (t.ucycles == 0) return std::nullopt;
    const double whole = static_cast<double>(t.ucycles);
    const double percent = 100.0 * static_cast<double>(e.ucycles) / whole;
    // Each row is rounded once, both ends of the thread are.
    const double units = 0.5 * static_cast<double>(e.rows) + std::max(1.0, percent / 100.0);
    return Share{percent, 0.01 + 100.0 * units / whole};
}

void check_single(Check& c) {
    for (const SummaryCore& core : c.summary.cores)
        for (const auto& [engine, e] : engines_of(core)) {
            if (e.threads.size() != 1 || e.rows == 0) continue;
            const auto share = share_of(c.summary, e, *e.threads[0]);
            if (!share) continue;
            const std::string what = name(core, e.threads[0]->thread) + " utilization";
            const double found = *e.threads[0]->utilization;
            if (share->untold == 0)
                c.near(what, found, share->percent, share->tolerance);
            else
                c.that(found >= share->percent - share->tolerance &&
                           found <= share->percent + share->untold + share->tolerance,
                       what + format_text(" is %.9g, expected from %.9g to %.9g", found,
                                          share->percent, share->percent + share->untold));
        }
}

void check_teams(Check& c) {
    for (const SummaryCore& core : c.summary.cores)
        for (const auto& [engine, e] : engines_of(core)) {
            if (e.threads.size() < 2) continue;
            const auto* busiest = *std::ranges::max_element(
                e.threads, {}, [](const SummaryThread* t) { return *t->utilization; });
            const auto share = share_of(c.summary, e, *busiest);
            if (!share || e.rows == 0) continue;
            c.that(share->percent + share->untold + share->tolerance >= *busiest->utilization,
                   name(core, busiest->thread) +
                       format_text(" utilization is %.2f, its engine's rows sum to %.2f",
                                   *busiest->utilization, share->percent));
            const std::string untold =
                share->untold > 0 ? format_text(" and up to %.2f", share->untold) : "";
            c.note(name(core) + " " + engine + format_text(" %.2f", share->percent) + untold +
                   format_text(" >= %.2f", *busiest->utilization));
        }
}

void check_core_totals(Check& c) {
    for (const SummaryCore& core : c.summary.cores) {
        Count ucycles, pcycles;
        for (const SummaryThread& t : core.threads) {
            ucycles = most(ucycles, t.ucycles);
            pcycles = most(pcycles, t.pcycles);
        }
        c.equal(name(core) + " total ucycles", core.total_ucycles, ucycles.value_or(0));
        c.equal(name(core) + " total pcycles", core.total_pcycles, pcycles);
    }
}

void check_lengths(Check& c) {
    const auto length = [&](const std::string& what, const auto& line) {
        c.equal(what + " ucycles", line.ucycles, line.end - line.start);
    };
    for (const SummaryCore& core : c.summary.cores) {
        for (const SummaryThread& t : core.threads) length(name(core, t.thread), t);
        c.that(core.threads.size() == core.batches.size(),
               name(core) + " has other threads in its batch lines");
        for (size_t i = 0; i < std::min(core.threads.size(), core.batches.size()); ++i) {
            const SummaryThread& t = core.threads[i];
            const SummaryBatch& b = core.batches[i];
            length(name(core, b.thread) + " batch", b);
            c.equal(name(core, t.thread) + " thread of the batch line", b.thread, t.thread);
            c.equal(name(core, b.thread) + " batch start", b.start, t.start);
            c.equal(name(core, b.thread) + " batch end", b.end, t.end);
            c.equal(name(core, b.thread) + " batch pcycles", b.pcycles, t.pcycles);
        }
    }
    c.equal("total batch ucycles", c.summary.total_ucycles,
            c.summary.total_end - c.summary.total_start);
}

void check_total(Check& c) {
    Count first, last;
    for (const SummaryCore& core : c.summary.cores)
        for (const SummaryThread& t : core.threads) {
            first = first ? std::min(*first, t.start) : t.start;
            last = most(last, t.end);
        }
    c.equal("total batch start", c.summary.total_start, first.value_or(0));
    c.equal("total batch end", c.summary.total_end, last.value_or(0));
}

void check_speed(Check& c) {
    if (c.summary.total_ucycles == 0) return;
    const double per_s = 1 / seconds(c);
    c.six_digits("batch/s", c.summary.batches_per_s, per_s);
    c.six_digits("inf/s", c.summary.inferences_per_s, static_cast<double>(c.summary.batch) * per_s);
}

void check_waits(Check& c) {
    Count input, output;
    for (const SummaryCore& core : c.summary.cores)
        for (const SummaryPort& p : core.ports) {
            Count& longest = p.port == 100 ? input : output;
            longest = most(longest, p.ucycles);
        }
    c.equal("max input wait", c.summary.max_input_wait, input);
    c.equal("max output wait", c.summary.max_output_wait, output);
}

void check_order(Check& c) {
    for (const SummaryCore& core : c.summary.cores) {
        for (size_t i = 1; i < core.rows.size(); ++i) {
            const SummaryRow &above = core.rows[i - 1], &row = core.rows[i];
            c.that(row.ucycles < above.ucycles ||
                       (row.ucycles == above.ucycles && above.details <= row.details),
                   name(row) + " stands below a smaller row");
        }
        for (const SummaryRow& row : core.rows)
            if (row.count == 1 && row.deviation) c.near(name(row) + " stddev", row.deviation, 0, 0);
        if (core.inference_pcycles && core.total_pcycles)
            c.that(*core.inference_pcycles >= *core.total_pcycles,
                   name(core) + " total inference pcycle " +
                       std::to_string(*core.inference_pcycles) + " is below the thread max");
    }
}

// Engines work side by side and wait within their rows: nothing to hold, a sum to know.
void note_sums(Check& c) {
    for (const SummaryCore& core : c.summary.cores)
        for (const auto& [engine, e] : engines_of(core)) {
            uint64_t whole = 0;
            for (const SummaryThread* t : e.threads) whole = std::max(whole, t->ucycles);
            if (whole > 0)
                c.note(name(core) + " " + engine +
                       format_text(" %.2f", 100.0 * static_cast<double>(e.all_ucycles) /
                                                static_cast<double>(whole)));
        }
}

struct Identity {
    const char* title;
    void (*check)(Check&);
};

// Numbered from 1.
constexpr Identity identities[] = {
    {"seconds are the total batch ucycles over their clock", check_seconds},
    {"effective frequency is pcycles over time, both thread max", check_frequency},
    {"percentages are shares of the core's thread max", check_percentages},
    {"rates per KB are quotients of their row", check_rates},
    {"an engine of one thread is busy for the sum of its rows", check_single},
    {"an engine of several threads has rows for its busiest thread", check_teams},
    {"core totals are the maximum over the threads", check_core_totals},
    {"lengths are end less start, batch lines repeat thread lines", check_lengths},
    {"total batch spans all cores", check_total},
    {"inf/s is the batch times batch/s", check_speed},
    {"waits are the maximum over the ports", check_waits},
    {"rows are sorted, one instance has no deviation", check_order},
    {"percentages of an engine need not add to 100", note_sums},
};
static_assert(std::size(identities) == 13);

}  // namespace

std::vector<IdentityResult> check_identities(const SummaryText& summary, uint64_t ucycle_hz) {
    std::vector<IdentityResult> results;
    for (const Identity& identity : identities) {
        Check check(summary, ucycle_hz);
        identity.check(check);
        results.push_back(check.result(static_cast<unsigned>(results.size() + 1), identity.title));
    }
    return results;
}

std::string text_of(const IdentityResult& r) {
    return "identity " + std::to_string(r.number) + ": " + r.title + ": " +
           (r.holds ? "ok (" : "FAILED (") + r.detail + ")";
}

uint64_t ucycle_hz_of(const SummaryText& summary) {
    constexpr std::string_view word = "ucycle 1/";
    const std::string_view clock = note_of(summary, "clock");
    const size_t at = clock.find(word);
    uint64_t hz = 0;
    if (at != clock.npos) {
        const std::string_view digits = clock.substr(at + word.size());
        std::from_chars(digits.data(), digits.data() + digits.size(), hz);
    }
    return hz == 0 ? default_ucycle_hz : hz;
}

}  // namespace vartml::profiling
