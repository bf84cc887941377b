# SPDX-License-Identifier: MIT
"""report: tables of what was measured, and the bars.

Everything is a ratio to glibc, or to jemalloc, in the same round of the same work: the machine's
other business then weighs on both. A cell is the median of the rounds' ratios and, behind it, the
least and the greatest.
"""
import math
import statistics

BASES = ('glibc', 'jemalloc')
PROGRAMS = 8  # in that group: the bars are for all of them
STARTS = 300  # programs that `start` starts


class Results:
    """Rows of runs: {'work', 'group', 'pass', 'round', 'allocator', 'role', metric...}."""

    def __init__(self, rows):
        self.rows = rows
        self.works = unique(r['work'] for r in rows)
        self.allocators = unique(r['allocator'] for r in rows)
        self.role = {r['allocator']: r['role'] for r in rows}
        self.group = {r['work']: r['group'] for r in rows}
        self.index = {}
        for r in rows:
            self.index.setdefault((r['work'], r['allocator'], r['pass']), {})[int(r['round'])] = r

    def values(self, work, allocator, metric, kind='time'):
        """By round."""
        return {n: float(r[metric]) for n, r in self.index.get((work, allocator, kind), {}).items()
                if r.get(metric) not in (None, '')}

    def median(self, work, allocator, metric, kind='time'):
        values = self.values(work, allocator, metric, kind)
        return statistics.median(values.values()) if values else None

    def ratios(self, work, allocator, base, metric, kind='time'):
        above, below = (self.values(work, a, metric, kind) for a in (allocator, base))
        return [above[n] / below[n] for n in sorted(above) if n in below and below[n]]

    def geometric(self, works, allocator, base, metric):
        """The geometric mean of several works: the median of the rounds, and all of them.

        None if a work is missing; where some have more rounds, the mean of their medians.
        """
        ratios = [self.ratios(w, allocator, base, metric) for w in works]
        if not ratios or not all(ratios):
            return None, []
        if len({len(r) for r in ratios}) > 1:
            return mean(map(statistics.median, ratios)), []
        rounds = [mean(r) for r in zip(*ratios)]
        return statistics.median(rounds), rounds

    def in_group(self, group):
        return [w for w in self.works if self.group[w] == group]

    def allocators_of(self, works):
        return unique(a for w, a, kind in self.index if w in works and kind == 'time')


def unique(words):
    return list(dict.fromkeys(words))


def mean(ratios):
    return math.exp(statistics.fmean(math.log(r) for r in ratios))


def cell(ratios):
    """The median, the least and the greatest."""
    if not ratios:
        return '-'
    if len(ratios) == 1:
        return '%.2f' % ratios[0]
    return '%.2f %.2f-%.2f' % (statistics.median(ratios), min(ratios), max(ratios))


def table(head, rows):
    """Plain text that is Markdown too."""
    lines = [head] + rows
    widths = [max(len(str(line[i])) for line in lines) for i in range(len(head))]
    text = ['| ' + ' | '.join(str(c).ljust(w) for c, w in zip(line, widths)) + ' |'
            for line in lines]
    text.insert(1, '|' + '|'.join('-' * (w + 2) for w in widths) + '|')
    return '\n'.join(text) + '\n'


def ratio_table(results, works, base, metric):
    others = [a for a in results.allocators_of(works) if a != base]
    rows = []
    for work in works:
        cells = [results.ratios(work, a, base, metric) for a in others]
        if any(cells):
            rows.append([work] + [cell(c) for c in cells])
    if len(works) > 1 and rows:
        row = ['geometric mean']
        for a in others:
            value, rounds = results.geometric(works, a, base, metric)
            row.append('-' if value is None else '%.3f' % value + (
                ' %.2f-%.2f' % (min(rounds), max(rounds)) if len(rounds) > 1 else ''))
        rows.append(row)
    return table([metric + ' / ' + base] + others, rows) if rows else ''


def value_table(results, works, title, metric, form, kind='time', scale=None):
    rows, allocators = [], results.allocators_of(works)
    for work in works:
        values = [results.median(work, a, metric, kind) for a in allocators]
        if any(v is not None for v in values):
            factor = scale(work) if scale else 1
            if factor:
                rows.append([work] + ['-' if v is None else form(v * factor) for v in values])
    return table([title] + allocators, rows) if rows else ''


def amount(value):
    for unit in ('', 'k', 'M', 'G'):
        if abs(value) < 10000:
            return ('%.0f' if value >= 100 or value == int(value) else '%.1f') % value + unit
        value /= 1000
    return '%.0fT' % value


def bars(results):
    """The project's own bars: what, whose, the limit, what was measured, and whether it holds.

    `of the fastest` is the ratio of the fastest runs of each: on a busy machine those were
    disturbed least.
    """
    programs, heavy = results.in_group('programs'), results.in_group('heavy')
    programs_are = 'programs' if len(programs) == PROGRAMS else '%d of the %d programs' % (
        len(programs), PROGRAMS)
    rows = []

    def add(text, role, limit, measured, least=False, form='%.3f', best=lambda a: None):
        for a in results.allocators:
            if results.role[a] != role:
                continue
            value, spread = measured(a)
            if value is None:
                continue
            holds = value >= limit if least else value <= limit
            fastest = best(a)
            rows.append([text, a, ('>= ' if least else '<= ') + form % limit, form % value,
                         '%s..%s' % (form % min(spread), form % max(spread))
                         if len(spread) > 1 else '', '' if fastest is None else form % fastest,
                         'holds' if holds else 'FAILS'])

    def geometric(works, base, metric):
        return lambda a: results.geometric(works, a, base, metric)

    def fastest(works, base, metric):
        def ratio(a):
            values = [[results.values(w, x, metric).values() for x in (a, base)] for w in works]
            return mean(min(mine) / min(theirs) for mine, theirs in values)
        return ratio

    def one(work, base, metric):
        def measured(a):
            ratios = results.ratios(work, a, base, metric)
            return (statistics.median(ratios), ratios) if ratios else (None, [])
        return measured

    def excess(work, base, metric, scale):
        def measured(a):
            mine, theirs = (results.values(work, x, metric) for x in (a, base))
            more = [(mine[n] - theirs[n]) * scale for n in sorted(mine) if n in theirs]
            return (statistics.median(more), more) if more else (None, [])
        return measured

    def most_vmas(a):
        most = [max(results.values(w, a, 'vmas').values(), default=0) for w in results.works]
        return (max(most), []) if any(most) else (None, [])

    times = (('wall', 'run time'), ('cpu', 'CPU time'))

    def add_times(text, works, base, role, limit):
        for metric, name in times:
            add('%s, %s / %s' % (text, name, base), role, limit, geometric(works, base, metric),
                best=fastest(works, base, metric))

    add_times(programs_are, programs, 'jemalloc', 'count', 1.03)
    add_times(programs_are, programs, 'glibc', 'address', 1.05)
    for work, name in (('nginx', 'ab'), ('nginx-wrk', 'wrk')):
        add('nginx (%s), throughput / glibc' % name, 'address', 0.97,
            one(work, 'glibc', 'throughput'), least=True)
    add(programs_are + ', peak RSS / glibc', 'address', 1.35, geometric(programs, 'glibc', 'rss'))
    add('idle nginx, MiB more a process', 'address', 3,
        excess('nginx-idle', 'glibc', 'idle_rss', 1 / 1024), form='%.2f')
    add_times('allocation-heavy', heavy, 'glibc', 'address', 1.10)
    add_times('allocation-heavy', heavy, 'jemalloc', 'count', 1.05)
    add_times('64-byte pair', ['pair-64'], 'glibc', 'count', 1.2)
    add_times('random 16-527 B', ['random'], 'glibc', 'address', 1.5)
    for role in ('address', 'count'):
        add('start of /bin/true, ms more', role, 1.5,
            excess('start', 'glibc', 'wall', 1000 / STARTS), form='%.2f')
    for role in ('address', 'count'):
        add('VMAs at the end, most of any', role, 1999, most_vmas, form='%.0f')
    if not rows:
        return ''
    return table(['bar', 'allocator', 'limit', 'measured', 'least..greatest', 'of the fastest', ''],
                 rows)


def tables(results):
    parts = []

    def part(title, *tables):
        tables = [t for t in tables if t]
        if tables:
            parts.append('## %s\n\n%s' % (title, '\n'.join(tables)))

    groups = unique(results.group[w] for w in results.works)
    for group in groups:
        works = results.in_group(group)
        part('%s: run time' % group, *(ratio_table(results, works, b, 'wall') for b in BASES),
             value_table(results, works, 'seconds', 'wall', '{:.3f}'.format))
        part('%s: CPU time' % group, *(ratio_table(results, works, b, 'cpu') for b in BASES))
        part('%s: throughput' % group, ratio_table(results, works, 'glibc', 'throughput'),
             value_table(results, works, 'per second', 'throughput', amount))
        part('%s: memory' % group, ratio_table(results, works, 'glibc', 'rss'),
             value_table(results, works, 'MiB peak RSS', 'rss', '{:.1f}'.format,
                         scale=lambda w: 1 / 1024),
             value_table(results, works, 'MiB idle RSS a process', 'idle_rss', '{:.2f}'.format,
                         scale=lambda w: 1 / 1024))
        part('%s: the kernel' % group, value_table(results, works, 'page faults', 'faults', amount),
             value_table(results, works, 'VMAs at the end', 'vmas', amount),
             value_table(results, works, 'system calls', 'calls', amount, 'calls'),
             value_table(results, works, 'those for memory', 'memory_calls', amount, 'calls'))

        def per_gib(work):
            allocated = results.median(work, 'glibc', 'allocated', 'bytes')
            return (1 << 30) / allocated / (1 << 20) if allocated else None
        part('%s: address space' % group,
             value_table(results, works, 'MiB used per GiB allocated', 'address_space', amount,
                         scale=per_gib))
        part('%s: instructions' % group,
             value_table(results, works, 'instructions an operation', 'instructions', amount,
                         'instructions'))
    return '\n'.join(parts)


def text(results):
    """What `make bench` prints: the bars last, where one sees them."""
    last = bars(results)
    return tables(results) + ('\n## Bars\n\n' + last if last else '')
