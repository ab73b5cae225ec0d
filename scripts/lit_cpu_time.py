"""Test formats of lit that also say what processor time a test took.

lit measures how long a test took, which other work on the machine stretches. The time of
the processes that a test started does not change with it, so that one budget holds on
every machine of a kind (scripts/slow-tests.py).
"""

import resource

import lit.formats
import lit.Test


def children_seconds():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


class MeasuresCPU:
    # A worker of lit runs one test at a time, so that what ends meanwhile is the test's.
    def execute(self, test, lit_config):
        before = children_seconds()
        result = super().execute(test, lit_config)
        if isinstance(result, tuple):
            result = lit.Test.Result(*result)
        result.addMetric("cpu", lit.Test.RealMetricValue(children_seconds() - before))
        return result


class ShTest(MeasuresCPU, lit.formats.ShTest):
    pass


class GoogleTest(MeasuresCPU, lit.formats.GoogleTest):
    pass
