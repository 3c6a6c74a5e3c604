"""PyPI nvtx client: with and as decorator, domains, categories, start/end, push/pop, marks, payloads.

--expect prints what the report must hold (nvtx_basic.c tells the format). Exit 77: no nvtx package.
"""
import sys

try:
    import nvtx
except ImportError:
    print("skipped: the nvtx package is not installed", file=sys.stderr)
    sys.exit(77)


@nvtx.annotate("decorated", color="blue")
def decorated(n):
    return n * 2


@nvtx.annotate(domain="pydom")
def named_by_function(n):
    return n + 1


@nvtx.annotate("raises")
def raises():
    raise ValueError("through a range")


def main():
    total = 0
    for i in range(3):
        with nvtx.annotate("outer"):
            for _ in range(10):
                with nvtx.annotate("inner", color="green", category="io"):
                    total = decorated(total) % 1000003
            with nvtx.annotate("in domain", domain="pydom", payload=i):
                total = named_by_function(total)
    for _ in range(5):
        try:
            raises()
        except ValueError:
            total += 1
    for i in range(4):
        nvtx.push_range("pushed", domain="pydom", payload=i * 0.5)
        nvtx.pop_range(domain="pydom")
    ids = [nvtx.start_range("async", domain="pydom") for _ in range(3)]
    for one in ids:
        nvtx.end_range(one)
    for _ in range(6):
        nvtx.mark("a mark", domain="pydom")
    with nvtx.annotate("größe €"):
        total += 1
    # the faster interface: a domain object and attributes made once
    domain = nvtx.get_domain("fast")
    attributes = domain.get_event_attributes(message="quick", payload=7)
    for _ in range(100):
        domain.push_range(attributes)
        domain.pop_range()
    print("total", total)
    if "--expect" in sys.argv:
        print("expect outer 3\nexpect inner 30\nexpect decorated 30\nexpect pydom:in domain 3\n"
              "value pydom:in domain 3 3 0 2\n"
              "expect pydom:named_by_function 3\nexpect raises 5\nexpect pydom:pushed 4\n"
              "value pydom:pushed 4 3 0 1.5\nexpect pydom:async 3\nexpect pydom:a mark 6\n"
              "expect größe € 1\nexpect fast:quick 100")


main()
