/* itt_library [who]: calls ITT as libraries do: oneDNN, OpenMP, PyTorch's emit_itt, and a user
 * beside them. `who` says who the collector is. --expect as in nvtx_basic.c. */
#include "itt_client.h"

#include <unistd.h>

static void task(const char *domain, const char *name, int times)
{
    struct gt_itt_domain *d = GET(domain_create, domain);

    for (int i = 0; i < times; i++) {
        begin(d, name);
        end(d);
    }
}

int main(int argc, char **argv)
{
    struct gt_itt_domain *user, *dnnl, *omp;
    const char *who;

    client_start(argc, argv);
    who = itt_start();
    if (argc > 1 && strcmp(argv[1], "who") == 0)
        printf("collector: %s\n", who ? who : "none");
    for (char **e = environ; *e; e++)
        if (strncmp(*e, "INTEL_LIBITTNOTIFY", 18) == 0)
            printf("in the environment: %s\n", *e);
    user = GET(domain_create, "user");
    dnnl = GET(domain_create, "dnnl::primitive::execute");
    omp = GET(domain_create, "main$omp$parallel:4@unknown:5:9");
    for (int i = 0; i < 3; i++) {
        begin(user, "step");
        begin(dnnl, "convolution");
        end(dnnl);
        end(user);
    }
    IN(frame_submit_v3, omp, NULL, GET(get_timestamp), GET(get_timestamp));
    task("PyTorch", "aten::mm", 2);
    task("PyTorch", "AddmmBackward0", 1);
    task("PyTorch", "my own range", 1);
    expect("user:step", 3);
    expect("dnnl::primitive::execute:convolution", 3);
    expect("main$omp$parallel:4@unknown:5:9:frame", 1);
    expect("PyTorch:aten::mm", 2);
    expect("PyTorch:AddmmBackward0", 1);
    expect("PyTorch:my own range", 1);
    puts("done");
    return 0;
}
