/* NVTX v3 client: every function of the C API, with counts that are known. With --expect it prints
 *   expect [DOMAIN:]NAME COUNT             a row of the report (NAME may hold spaces)
 *   value [DOMAIN:]NAME COUNT SUM MIN MAX  its payloads
 *   total overlapped|unbalanced COUNT
 * Needs no GPU. Exit 77: built without NVTX headers. */
#include "nvtx_client.h"

#if HAVE_NVTX
static nvtxDomainHandle_t alpha, beta, gamma_domain;

static void recurse(int n)
{
    if (n == 0)
        return;
    nvtxRangePushA("rec");
    recurse(n - 1);
    nvtxRangePop();
}

static void nested(void)
{
    for (int i = 0; i < 3; i++) {
        nvtxRangePushA("outer");
        for (int j = 0; j < 10; j++) {
            nvtxEventAttributes_t a = text_attr("inner");

            nvtxRangePushEx(&a);
            nvtxRangePushA("leaf");
            nvtxRangePop();
            nvtxRangePop();
        }
        nvtxRangePop();
    }
    recurse(5);
    for (int i = 0; i < 1000; i++) {
        nvtxRangePushA("leaf");
        nvtxRangePop();
    }
    expect("outer", 3);
    expect("inner", 30);
    expect("leaf", 1030);
    expect("rec", 5);
}

static void domains(void)
{
    nvtxEventAttributes_t work = text_attr("work");
    nvtxEventAttributes_t reg = text_attr(NULL);

    alpha = nvtxDomainCreateA("alpha");
    beta = nvtxDomainCreateA("beta");
    gamma_domain = nvtxDomainCreateW(L"gamma");
    for (int i = 0; i < 7; i++) {
        nvtxDomainRangePushEx(alpha, &work);
        if (i < 5)
            nvtxDomainRangePushEx(beta, &work);
        nvtxDomainRangePop(alpha); /* from under beta's */
        if (i < 5)
            nvtxDomainRangePop(beta);
    }
    reg.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    reg.message.registered = nvtxDomainRegisterStringA(alpha, "registered name");
    for (int i = 0; i < 4; i++) {
        nvtxDomainRangePushEx(alpha, &reg);
        nvtxDomainRangePop(alpha);
    }
    reg.message.registered = nvtxDomainRegisterStringW(beta, L"wide registered");
    nvtxDomainRangePushEx(NULL, &reg);
    nvtxDomainRangePop(NULL);
    expect("alpha:work", 7);
    expect("beta:work", 5);
    total("overlapped", 5);
    expect("alpha:registered name", 4);
    expect("wide registered", 1);
}

static void wide(void)
{
    nvtxEventAttributes_t a = text_attr(NULL);

    a.messageType = NVTX_MESSAGE_TYPE_UNICODE;
    a.message.unicode = L"Gr\u00f6\u00dfe \u20ac";
    for (int i = 0; i < 2; i++) {
        nvtxRangePushW(L"wide");
        nvtxDomainRangePushEx(gamma_domain, &a);
        nvtxDomainRangePop(gamma_domain);
        nvtxRangePop();
    }
    nvtxMarkW(L"wide mark");
    nvtxRangeEnd(nvtxRangeStartW(L"wide async"));
    expect("wide", 2);
    expect("gamma:Gr\xc3\xb6\xc3\x9f"
           "e \xe2\x82\xac",
           2);
    expect("wide mark", 1);
    expect("wide async", 1);
}

static void async(void)
{
    nvtxEventAttributes_t a = text_attr("async");
    nvtxRangeId_t id[6];

    for (int i = 0; i < 3; i++)
        id[i] = nvtxRangeStartA("async");
    id[3] = nvtxRangeStartEx(&a);
    id[4] = nvtxDomainRangeStartEx(alpha, &a);
    id[5] = nvtxDomainRangeStartEx(alpha, &a);
    for (int i = 0; i < 4; i++)
        nvtxRangeEnd(id[i]);
    nvtxDomainRangeEnd(alpha, id[5]);
    nvtxDomainRangeEnd(alpha, id[4]);
    expect("async", 4);
    expect("alpha:async", 2);
}

static void marks(void)
{
    nvtxEventAttributes_t a = text_attr("tick");

    nvtxMarkA("tick");
    nvtxMarkA("tick");
    nvtxMarkEx(&a);
    nvtxDomainMarkEx(alpha, &a);
    expect("tick", 3);
    expect("alpha:tick", 1);
}

static void categories(void)
{
    nvtxEventAttributes_t a = text_attr("read");

    nvtxNameCategoryA(7, "io");
    nvtxNameCategoryW(8, L"net");
    nvtxDomainNameCategoryA(alpha, 7, "alpha io");
    nvtxDomainNameCategoryW(alpha, 8, L"alpha net");
    nvtxNameOsThreadA((uint32_t)syscall(SYS_gettid), "the main one");
    for (int i = 0; i < 5; i++) {
        a.category = i < 3 ? 7 : 8;
        nvtxRangePushEx(&a);
        nvtxRangePop();
    }
    expect("read", 5);
}

static void payloads(void)
{
    nvtxEventAttributes_t a = text_attr("load");

    for (int type = NVTX_PAYLOAD_TYPE_UNSIGNED_INT64; type <= NVTX_PAYLOAD_TYPE_FLOAT; type++) {
        memset(&a.payload, 0xff, sizeof(a.payload)); /* half of it belongs to nobody */
        a.payloadType = type;
        switch (type) {
        case NVTX_PAYLOAD_TYPE_UNSIGNED_INT64:
            a.payload.ullValue = 1;
            break;
        case NVTX_PAYLOAD_TYPE_INT64:
            a.payload.llValue = -2;
            break;
        case NVTX_PAYLOAD_TYPE_DOUBLE:
            a.payload.dValue = 0.5;
            break;
        case NVTX_PAYLOAD_TYPE_UNSIGNED_INT32:
            a.payload.uiValue = 7;
            break;
        case NVTX_PAYLOAD_TYPE_INT32:
            a.payload.iValue = -3;
            break;
        default:
            a.payload.fValue = 1.5f;
        }
        nvtxRangePushEx(&a);
        nvtxRangePop();
    }
    /* a type from the extension: its pointer is no number */
    a.payloadType = (int32_t)0xdfbd0009;
    nvtxRangePushEx(&a);
    nvtxRangePop();
    expect("load", 7);
    if (expecting)
        printf("value load 6 5 -3 7\n");
}

static void resources(void)
{
    nvtxResourceAttributes_t r = {0};
    nvtxResourceHandle_t h;

    r.version = NVTX_VERSION;
    r.size = sizeof(r);
    r.messageType = NVTX_MESSAGE_TYPE_ASCII;
    r.message.ascii = "a mutex";
    h = nvtxDomainResourceCreate(alpha, &r);
    nvtxDomainResourceDestroy(h);
}

int main(int argc, char **argv)
{
    client_start(argc, argv);
    nvtxInitialize(NULL);
    nested();
    domains();
    wide();
    async();
    marks();
    categories();
    payloads();
    resources();
    nvtxDomainDestroy(beta);
    puts("done");
    return 0;
}
#else
int main(void)
{
    return no_nvtx();
}
#endif
