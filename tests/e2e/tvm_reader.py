"""What the real tvm.runtime.profiling.Report makes of some texts. Run by test_tvm.py in a process of its
own, since it may crash. Standard input: in each line a JSON list of reports; standard output: for each a line, a JSON
list of {"tables": {"110": …}, "csv": …, "json": …} or {"error": …}. The digits: sort, aggregate, col_sums."""
import contextlib
import itertools
import json
import os
import sys

out = os.fdopen(os.dup(1), "w")
os.dup2(2, 1)  # TVM prints while it loads
with contextlib.redirect_stdout(sys.stderr):
    from tvm.runtime.profiling import Report


def look(text):
    try:
        report = Report.from_json(text)
        tables = {}
        for sort, aggregate, sums in itertools.product((True, False), repeat=3):
            key = f"{sort:d}{aggregate:d}{sums:d}"
            tables[key] = report.table(sort=sort, aggregate=aggregate, col_sums=sums)
        return {"tables": tables, "csv": report.csv(), "json": report.json()}
    except Exception as e:
        return {"error": str(e)}


for line in sys.stdin:
    print(json.dumps([look(text) for text in json.loads(line)]), file=out, flush=True)
