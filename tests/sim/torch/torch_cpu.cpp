/* The stand-in's libtorch_cpu.so: see sim.h. */
#include "sim.h"
#include <atomic>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <set>
#include <stdexcept>
#include <unordered_set>

#ifdef SIM_PLUGIN
static struct hello {
    hello() { puts("torch: constructor"); }
} hello;
#endif

namespace at
{
static std::mutex lock;
static std::vector<RecordFunctionCallback> &callbacks()
{
    static std::vector<RecordFunctionCallback> list; /* made by its first use, as PyTorch's is */
    return list;
}

uint64_t addGlobalCallback(RecordFunctionCallback callback)
{
    std::lock_guard<std::mutex> guard(lock);
    callbacks().push_back(callback);
    return callbacks().size();
}

bool hasGlobalCallbacks()
{
    std::lock_guard<std::mutex> guard(lock);
    return !callbacks().empty();
}

uint64_t RecordFunction::currentThreadId()
{
    static std::atomic<uint64_t> threads{0};
    static thread_local uint64_t id;

    if (!id)
        id = ++threads;
    return id;
}

namespace sequence_number
{
static thread_local uint64_t number;
uint64_t peek()
{
    return number;
}
uint64_t get_and_increment()
{
    return number++;
}
} // namespace sequence_number

#ifndef SIM_LACKS
const char *RecordFunction::name() const
{
    return text;
}
#endif
#if SIM_VERSION != 113
const char *RecordFunction::overload_name() const
{
    return overload;
}
#endif
} // namespace at

namespace torch::profiler::impl
{
static long asked;

std::vector<std::vector<int64_t>> inputSizes(const at::RecordFunction &rf, bool)
{
    std::vector<std::vector<int64_t>> all;

    asked++;
    for (size_t i = 0; i < rf.input_count; i++) {
        const c10::IValue &v = rf.inputs[i];

        all.emplace_back();
        if (v.tag != 1 || v.tensor == &c10::UndefinedTensorImpl::_singleton)
            continue;
        if (v.tensor->policy >> 2 & 2)
            throw std::runtime_error("sizes() of a tensor that has none");
        all.back().assign(v.tensor->sizes, v.tensor->sizes + v.tensor->dims);
    }
    return all;
}

std::unordered_map<std::string, c10::IValue> saveExtraArgs(const at::RecordFunction &rf)
{
    std::unordered_map<std::string, c10::IValue> extra;

    extra.emplace("stride", rf.inputs[3]);
    extra.emplace("a name that does not fit into a short string", rf.inputs[4]);
    return extra;
}

uint64_t computeFlops(const std::string &name,
                      const std::unordered_map<std::string, c10::IValue> &extra)
{
    return name == "aten::conv2d" && extra.size() == 2 ? 1000 * (uint64_t)extra.at("stride").number
                                                       : 0;
}
} // namespace torch::profiler::impl

/* PyTorch 2.13 has this destructor among its symbols */
#if SIM_VERSION != 113
template class std::unordered_map<std::string, c10::IValue>;
template class std::_Hashtable<
    std::string, std::pair<const std::string, c10::IValue>,
    std::allocator<std::pair<const std::string, c10::IValue>>, std::__detail::_Select1st,
    std::equal_to<std::string>, std::hash<std::string>, std::__detail::_Mod_range_hashing,
    std::__detail::_Default_ranged_hash, std::__detail::_Prime_rehash_policy,
    std::__detail::_Hashtable_traits<true, false, true>>;
#endif

namespace torch::autograd::profiler
{
struct ProfilerResult {
    int number;
};
using namespace torch::profiler::impl;

void enableProfiler(const ProfilerConfig &, const std::set<ActivityType> &,
                    const std::unordered_set<at::RecordScope> &)
{
    puts("profiler: on");
}

std::unique_ptr<ProfilerResult> disableProfiler()
{
    puts("profiler: off");
    return std::unique_ptr<ProfilerResult>(new ProfilerResult{42});
}
} // namespace torch::autograd::profiler

/* ---- for the program ---- */

extern "C" void sim_profiler_memory(int state);
extern "C" void sim_profiler(int on, int memory)
{
    using namespace torch::autograd::profiler;

    if (on) {
        alignas(16) static const char config[64] = {}; /* nobody looks into it */
        enableProfiler(reinterpret_cast<const ProfilerConfig &>(config), {}, {});
        sim_profiler_memory(memory ? 2 : 1);
    } else {
        sim_profiler_memory(0);
        printf("profiler: result %d\n", disableProfiler()->number);
    }
}

extern "C" long sim_asked(void)
{
    return torch::profiler::impl::asked;
}

extern "C" void sim_tensor(c10::IValue *value, int kind, const int64_t *sizes, size_t dims)
{
    value->tag = 1;
    value->tensor = kind == 3 ? new c10::NestedTensorImpl : new c10::TensorImpl;
    value->tensor->dims = dims;
    for (size_t i = 0; i < dims; i++)
        value->tensor->sizes[i] = sizes[i];
    if (kind == 1)
        value->tensor->policy = 2 << 2;
    if (kind == 2)
        value->tensor->policy = 2 << 2 | 1 << 4;
}

struct running {
    at::RecordFunction rf;
    struct seen {
        at::RecordFunctionCallback callback;
        std::unique_ptr<at::ObserverContext> context;
    };
    std::vector<seen> seen;
};

/* What else lies in memory there: never the same twice. */
static void fill(char *bytes, size_t count)
{
    static thread_local uint32_t state = 1;

    for (size_t i = 0; i < count; i++)
        bytes[i] = (char)((state = state * 1103515245 + 12345) >> 24);
}

static running *prepare(const char *name, [[maybe_unused]] int64_t sequence,
                        uint64_t forward_thread)
{
    running *r = new running();

    fill(r->rf.head, sizeof r->rf.head);
    fill(r->rf.behind, sizeof r->rf.behind);
    memset(r->rf.middle, 0, sizeof r->rf.middle);
    r->rf.text = name;
    r->rf.overload = "";
#ifndef SIM_HIDES
    r->rf.sequence = sequence;
#endif
    r->rf.forward_thread = forward_thread;
#ifdef SIM_TWINS
    r->rf.twin = forward_thread;
#endif
    return r;
}

static void *start(running *r, int scope, const c10::IValue *inputs, size_t count)
{
    std::vector<at::RecordFunctionCallback> all;

    {
        std::lock_guard<std::mutex> guard(at::lock);
        all = at::callbacks();
    }
    for (const auto &c : all) {
        if (!c.scopes[scope])
            continue;
        r->rf.inputs = c.needs_inputs ? inputs : nullptr;
        r->rf.input_count = c.needs_inputs ? count : 0;
        try {
            r->seen.push_back({c, c.start(r->rf)});
        } catch (const std::exception &e) {
            printf("a callback threw: %s\n", e.what());
        }
    }
    return r;
}

extern "C" void *sim_begin(int scope, const char *name, const char *overload,
                           const c10::IValue *inputs, size_t count)
{
    running *r = prepare(name, -1, 0);

    r->rf.overload = overload;
    return start(r, scope, inputs, count);
}

extern "C" void *sim_node(const char *name, int64_t *sequence)
{
    running *r = prepare(name, (int64_t)at::sequence_number::peek(), 0);

    start(r, 0, nullptr, 0);
    *sequence = (int64_t)at::sequence_number::get_and_increment();
    return r;
}

extern "C" void *sim_backward(const char *name, int64_t sequence, uint64_t thread)
{
    return start(prepare(name, sequence, thread), 1, nullptr, 0);
}

extern "C" uint64_t sim_thread(void)
{
    return at::RecordFunction::currentThreadId();
}

extern "C" void sim_end(void *op)
{
    running *r = (running *)op;

    for (auto &s : r->seen)
        s.callback.end(r->rf, s.context.get());
    delete r;
}
