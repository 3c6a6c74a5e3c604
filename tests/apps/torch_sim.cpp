/* Drives the stand-in for PyTorch of tests/sim/torch: torch_sim MODE FOLDER. It opens
 * FOLDER/libtorch_cpu.so as Python does and says on standard output all that it can see, so that a
 * run with gputally can be compared with one without. */
#include "../sim/torch/sim.h"
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

static struct {
    decltype(&sim_begin) begin;
    decltype(&sim_end) end;
    decltype(&sim_tensor) tensor;
    decltype(&sim_asked) asked;
    decltype(&sim_values) values;
    decltype(&sim_alloc) alloc;
    decltype(&sim_free) free;
    decltype(&sim_device) device;
    decltype(&sim_profiler) profiler;
    decltype(&sim_node) node;
    decltype(&sim_backward) backward;
    decltype(&sim_thread) thread;
} sim;

static void *library;

template <class F> static void get(F *&f, const char *name)
{
    f = (F *)dlsym(library, name);
    if (!f) {
        printf("%s: %s\n", name, dlerror());
        exit(1);
    }
}

static void load(const char *folder)
{
    std::string path = std::string(folder) + "/libtorch_cpu.so";

    library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        puts(dlerror());
        exit(1);
    }
    get(sim.begin, "sim_begin");
    get(sim.end, "sim_end");
    get(sim.tensor, "sim_tensor");
    get(sim.asked, "sim_asked");
    get(sim.values, "sim_values");
    get(sim.alloc, "sim_alloc");
    get(sim.free, "sim_free");
    get(sim.device, "sim_device");
    get(sim.profiler, "sim_profiler");
    get(sim.node, "sim_node");
    get(sim.backward, "sim_backward");
    get(sim.thread, "sim_thread");
}

/* As IValue, but of the program: its own constructor is in the library that may go. */
struct value {
    c10::TensorImpl *tensor;
    uint32_t tag;
};

static value tensor(int kind, std::initializer_list<int64_t> sizes)
{
    value v = {nullptr, 0};

    sim.tensor((c10::IValue *)&v, kind, sizes.begin(), sizes.size());
    return v;
}

struct op {
    void *running;
    op(const char *name, std::initializer_list<value> inputs = {}, const char *overload = "",
       int scope = 0)
    {
        running =
            sim.begin(scope, name, overload, (const c10::IValue *)inputs.begin(), inputs.size());
    }
    ~op() { sim.end(running); }
};

/* ---- the modes ---- */

static void basic()
{
    op step("ProfilerStep#7", {}, "", 7);
    for (int i = 0; i < 3; i++) {
        op linear("aten::linear");
        void *a = sim.alloc(100);
        {
            op enter("profiler::_record_function_enter_new");
            op user("mine", {}, "", 7);
            sim.free(sim.alloc(10));
        }
        op leaf("aten::is_leaf"), nr("aten::output_nr"), version("aten::_version");
        op inner("aten::addmm", {}, "out");
        op same("aten::addmm", {}, "out"); /* a duplicate: the only child, of the same name */
        sim.free(a);
    }
    {
        op b("MmBackward0", {}, "", 1);
    }
    {
        op s("forward", {}, "", 2);
    }
    {
        op dtype("a kernel's dtype", {}, "", 3);
    } /* a scope that is not recorded */
    sim.device(1, 4096);
    sim.device(20, -96);
    sim.device(14, 5); /* meta: neither main memory nor a device */
}

static void shapes()
{
    value number = {nullptr, 7};
    value two = {(c10::TensorImpl *)(intptr_t)2, 7};
    for (int i = 0; i < 20; i++) {
        op mm("aten::mm", {tensor(0, {2, 3}), tensor(0, {3, 4})});
        op add("aten::add", {tensor(0, {5}), number, number});
        op stack("aten::mul", {number, number, tensor(0, {2, 4})});
        op list("aten::list", {number, tensor(0, {}), tensor(0, {1, 0, 9, 2, 3})});
    }
    {
        op conv("aten::conv2d",
                {tensor(0, {1, 3, 8, 8}), tensor(0, {4, 3, 3, 3}), number, two, two, two, number});
    }
    {
        op conv("aten::conv2d",
                {tensor(0, {1, 3, 8, 8}), tensor(0, {4, 3, 3, 3}), number, two, two, two, number},
                "padding");
    }
    {
        op sub("aten::relu", {tensor(1, {6, 7})});
    }
    {
        op sym("aten::relu", {tensor(2, {0})});
    }
    {
        op nested("aten::relu", {tensor(3, {0})});
    }
    printf("values %ld\n", sim.values());
}

/* Whoever is first would make inputSizes throw. */
static void shapes_odd_first()
{
    for (int i = 0; i < 3; i++)
        op sym("aten::tan", {tensor(2, {0})});
    for (int i = 0; i < 20; i++)
        op mm("aten::mm", {tensor(0, {2, 3}), tensor(0, {3, 4})});
    op sym("aten::tan", {tensor(2, {0})});
}

static void threads()
{
    void *crossing = nullptr;
    std::thread([&] {
        op here("aten::here");
        crossing = sim.begin(7, "crossing", "", nullptr, 0);
    }).join();
    sim.end(crossing);
    std::thread([] {
        for (int i = 0; i < 50; i++)
            op mm("aten::mm");
    }).join();
    op mm("aten::mm");
}

static void throws()
{
    for (int i = 0; i < 3; i++) {
        try {
            op outer("aten::outer");
            op inner("aten::inner");
            throw i;
        } catch (int n) {
            printf("caught %d\n", n);
        }
    }
}

static void forks()
{
    op before("aten::before");
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < 4; i++)
            op mm("aten::mm");
        _exit(7);
    }
    int status;
    waitpid(child, &status, 0);
    printf("child %d\n", WEXITSTATUS(status));
    op mm("aten::mm");
}

/* What a program's own profiler is told may not depend on us. */
static void profiles()
{
    void *old = sim.alloc(1000), *older = sim.alloc(2000), *kept, *freed;

    for (int round = 0; round < 2; round++) {
        {
            op outside("aten::outside");
        }
        sim.profiler(1, 1);
        {
            op inside("aten::inside");
        }
        kept = sim.alloc(30), freed = sim.alloc(40);
        sim.free(freed);
        if (round == 0)
            sim.free(old); /* unknown to the profiler */
        sim.device(1, 512);
        sim.profiler(0, 0);
        sim.free(kept); /* not seen by it: known for good */
        sim.device(1, -512);
    }
    sim.profiler(1, 0); /* without memory */
    sim.free(sim.alloc(50));
    sim.device(1, 1);
    sim.profiler(0, 0);
    sim.profiler(1, 1);
    sim.free(older);
    sim.profiler(0, 0);
}

static void unloads(const char *folder)
{
    for (int i = 0; i < 3; i++) {
        {
            op mm("aten::mm");
        }
        sim.free(sim.alloc(10));
        sim.profiler(1, 1);
        sim.profiler(0, 0);
        if (dlclose(library) != 0)
            puts(dlerror());
        printf("gone: %s\n",
               dlopen((std::string(folder) + "/libtorch_cpu.so").c_str(), RTLD_NOW | RTLD_NOLOAD)
                   ? "no"
                   : "yes");
        load(folder);
    }
    op mm("aten::mm");
}

static void twice(const char *folder)
{
    for (int i = 0; i < 3; i++) {
        load(folder);
        op mm("aten::mm");
    }
}

/* PyTorch's text for NVTX is put where NVTX v2 would put it. */
static void nvtx()
{
    auto push = (int (*)(const char *))dlsym(RTLD_DEFAULT, "nvtxRangePushA");
    auto pop = (int (*)())dlsym(RTLD_DEFAULT, "nvtxRangePop");

    if (!push || !pop)
        return;
    for (int i = 0; i < 5; i++) {
        char text[64];
        snprintf(text, sizeof text, "aten::mm, seq = %d, op_id = %d", i, i + 100);
        {
            op mm("aten::mm");
            push(text);
            push("the user's own");
            pop();
            pop();
        }
        push(text); /* nobody else sees this one */
        pop();
    }
}

/* ---- forward and backward: functions that are told apart in a stack ---- */

struct node {
    int64_t sequence;
    uint64_t thread;
};

__attribute__((noinline)) static node forward_square()
{
    node n = {0, sim.thread()};

    op empty("aten::empty");
    void *mul = sim.node("aten::mul", &n.sequence);
    {
        op below("aten::below");
    }
    sim.end(mul);
    return n;
}

__attribute__((noinline)) static node forward_total()
{
    node n = {0, sim.thread()};

    sim.end(sim.node("aten::sum", &n.sequence));
    return n;
}

__attribute__((noinline)) static void run_backward(const node *nodes, size_t count)
{
    static const char *const names[] = {"MulBackward0", "SumBackward0", "UnknownBackward0"};

    for (size_t i = count; i-- > 0;) {
        op engine("autograd::engine::evaluate_function: it");
        void *b = sim.backward(names[i], nodes[i].sequence, nodes[i].thread);
        {
            op inner("aten::inner");
            op deeper("aten::deeper");
        }
        sim.end(b);
        op beside("aten::beside");
    }
    sim.end(sim.backward("AccumulateGrad", -1, nodes[0].thread));
}

__attribute__((noinline)) static void step(int on_another_thread)
{
    node nodes[3] = {forward_square(), forward_total(), {1000000, 1}};

    if (on_another_thread)
        std::thread(run_backward, nodes, 3).join();
    else
        run_backward(nodes, 3);
}

static void backward(int on_another_thread)
{
    for (int i = 0; i < 400; i++) {
        step(on_another_thread);
        step(on_another_thread);
    }
}

int main(int argc, char **argv)
{
    if (argc < 3)
        return 2;
    std::string mode = argv[1];
    setvbuf(stdout, nullptr, _IOLBF, 0);
    load(argv[2]);
    if (mode == "basic")
        basic();
    else if (mode == "shapes")
        shapes();
    else if (mode == "odd")
        shapes_odd_first();
    else if (mode == "threads")
        threads();
    else if (mode == "throws")
        throws();
    else if (mode == "forks")
        forks();
    else if (mode == "profiles")
        profiles();
    else if (mode == "unloads")
        unloads(argv[2]);
    else if (mode == "twice")
        twice(argv[2]);
    else if (mode == "backward" || mode == "elsewhere")
        backward(mode == "elsewhere");
    else if (mode == "nvtx")
        nvtx();
    else
        return 2;
    puts("done");
    return 0;
}
