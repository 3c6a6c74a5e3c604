/* NVTX client that does everything wrong that programs do wrong; nothing may crash and what is
 * right must be counted. --expect as in nvtx_basic.c. Exit 77: no NVTX headers. */
#include "nvtx_client.h"

#if HAVE_NVTX
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

static long unbalanced, null_names;

/* Pointers nobody gave out: small, wild, and into the program's own memory. */
static void *const foreign[] = {(void *)1, (void *)0xdeadbeef, (void *)-1, &unbalanced};
#define FOREIGN (sizeof(foreign) / sizeof(*foreign))

static void nulls(void)
{
    nvtxEventAttributes_t a = text_attr(NULL);
    nvtxEventAttributes_t reg = text_attr(NULL);

    reg.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    nvtxRangePushA(NULL);
    nvtxRangePop();
    nvtxRangePushW(NULL);
    nvtxRangePop();
    nvtxRangePushEx(NULL);
    nvtxRangePop();
    nvtxRangePushEx(&a);
    nvtxRangePop();
    nvtxRangePushEx(&reg);
    nvtxRangePop();
    nvtxRangeEnd(nvtxRangeStartA(NULL));
    nvtxRangeEnd(nvtxRangeStartEx(NULL));
    nvtxMarkA(NULL);
    nvtxMarkEx(NULL);
    nvtxDomainRangePushEx(NULL, NULL);
    nvtxDomainRangePop(NULL);
    nvtxDomainMarkEx(NULL, NULL);
    nvtxNameCategoryA(1, NULL);
    nvtxNameCategoryW(1, NULL);
    nvtxNameOsThreadA(0, NULL);
    nvtxDomainNameCategoryA(NULL, 1, NULL);
    nvtxDomainDestroy(NULL);
    nvtxDomainResourceDestroy(nvtxDomainResourceCreate(NULL, NULL));
    reg.message.registered = nvtxDomainRegisterStringA(NULL, NULL);
    nvtxRangePushEx(&reg);
    nvtxRangePop();
    nvtxDomainRangePushEx(nvtxDomainCreateA(NULL), &reg);
    nvtxDomainRangePop(NULL); /* a domain without a name is the default one */
    null_names += 13;
}

static void foreign_handles(void)
{
    nvtxEventAttributes_t good = text_attr("good name");
    nvtxEventAttributes_t reg = text_attr(NULL);
    nvtxDomainHandle_t one = nvtxDomainCreateA("one"), two = nvtxDomainCreateA("two");

    reg.messageType = NVTX_MESSAGE_TYPE_REGISTERED;
    nvtxRangePushA("around the foreign");
    for (size_t i = 0; i < FOREIGN; i++) {
        /* a wild domain has ranges of its own: this must not close the one around */
        nvtxDomainRangePop(foreign[i]);
        unbalanced++;
        nvtxDomainRangePushEx(foreign[i], &good);
        nvtxDomainRangePop(foreign[i]);
        nvtxDomainDestroy(foreign[i]);
        reg.message.registered = foreign[i];
        nvtxRangePushEx(&reg);
        nvtxRangePop();
    }
    nvtxRangePop();
    /* a string of another domain is its text */
    reg.message.registered = nvtxDomainRegisterStringA(one, "of one");
    nvtxDomainRangePushEx(two, &reg);
    nvtxDomainRangePop(two);
    /* a destroyed domain, twice, and used afterwards */
    nvtxDomainDestroy(one);
    nvtxDomainDestroy(one);
    nvtxDomainRangePushEx(one, &reg);
    nvtxDomainRangePop(one);
    expect("around the foreign", 1);
    expect("(invalid domain):good name", FOREIGN);
    expect("(invalid string)", FOREIGN);
    expect("two:of one", 1);
    expect("one:of one", 1);
}

static void wrong_sizes(void)
{
    nvtxEventAttributes_t *a = malloc(offsetof(nvtxEventAttributes_t, payload));
    nvtxEventAttributes_t whole = text_attr("sized");

    /* in memory of exactly that size: what lies behind must not be read */
    if (!a)
        exit(3);
    memcpy(a, &whole, offsetof(nvtxEventAttributes_t, payload));
    a->size = offsetof(nvtxEventAttributes_t, payload);
    a->payloadType = NVTX_PAYLOAD_TYPE_DOUBLE;
    nvtxRangePushEx(a);
    nvtxRangePop();
    nvtxMarkEx(a);
    free(a);
    whole.size = 0;
    nvtxRangePushEx(&whole);
    nvtxRangePop();
    whole.size = 0xffff; /* of a later version: the fields known today are where they were */
    whole.version = 0xffff;
    nvtxRangePushEx(&whole);
    nvtxRangePop();
    whole.size = NVTX_EVENT_ATTRIB_STRUCT_SIZE;
    whole.messageType = 99;
    whole.message.ascii = (const char *)1;
    whole.payloadType = -7;
    whole.colorType = 12345;
    nvtxRangePushEx(&whole);
    nvtxRangePop();
    expect("sized", 1);
    null_names += 4;
}

/* case 11: the ranges after the surplus pops are right */
static void surplus_pops(void)
{
    nvtxRangePushA("one push");
    for (int i = 0; i < 3; i++)
        nvtxRangePop();
    unbalanced += 2;
    for (int i = 0; i < 10; i++) {
        nvtxRangePushA("later outer");
        nvtxRangePushA("later inner");
        nvtxRangePop();
        nvtxRangePop();
    }
    nvtxRangeEnd(0x7777777777777777);
    unbalanced++;
    expect("one push", 1);
    expect("later outer", 10);
    expect("later inner", 10);
}

/* case 12 */
static sem_t pushed, popped;
static nvtxRangeId_t across[2];

static void *other_thread(void *arg)
{
    (void)arg;
    nvtxRangePushA("popped elsewhere"); /* stays open until this thread ends */
    across[0] = nvtxRangeStartA("across");
    across[1] = nvtxRangeStartA("across");
    sem_post(&pushed);
    sem_wait(&popped);
    return NULL;
}

static void threads(void)
{
    pthread_t t;

    sem_init(&pushed, 0, 0);
    sem_init(&popped, 0, 0);
    if (pthread_create(&t, NULL, other_thread, NULL) != 0)
        exit(3);
    sem_wait(&pushed);
    nvtxRangePop();
    unbalanced++;
    nvtxRangeEnd(across[0]); /* oldest first: they overlap */
    nvtxRangeEnd(across[1]);
    nvtxRangeEnd(across[1]);
    unbalanced++;
    sem_post(&popped);
    pthread_join(t, NULL);
    expect("popped elsewhere", 1);
    expect("across", 2);
    total("left open", 1);
}

static void long_names(void)
{
    static char ascii[70000];
    static wchar_t wide[20000];

    memset(ascii, 'x', sizeof(ascii) - 1);
    nvtxRangePushA(ascii);
    nvtxRangePop();
    for (size_t i = 0; i + 1 < sizeof(wide) / sizeof(*wide); i++)
        wide[i] = 0x20ac;
    nvtxRangePushW(wide);
    nvtxRangePop();
    wide[3] = (wchar_t)0xd800;
    wide[4] = 0;
    nvtxRangePushW(wide);
    nvtxRangePop();
    nvtxRangePushA("bad \xff\xc0 utf-8 \x01 \" \\ \n end");
    nvtxRangePop();
    expect("\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xef\xbf\xbd", 1);
}

int main(int argc, char **argv)
{
    client_start(argc, argv);
    nulls();
    foreign_handles();
    wrong_sizes();
    surplus_pops();
    threads();
    long_names();
    expect("(null)", null_names);
    total("unbalanced", unbalanced);
    puts("done");
    return 0;
}
#else
int main(void)
{
    return no_nvtx();
}
#endif
