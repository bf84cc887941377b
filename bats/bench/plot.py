# SPDX-License-Identifier: MIT
"""plot: one picture of what was measured, each allocator a colour, glibc the line at 1."""
import statistics

# Told apart also by those who see fewer colours.
COLOURS = {'jemalloc': '#e69f00', 'mimalloc': '#56b4e9', 'tcmalloc': '#999999',
           'address': '#d55e00', 'count': '#0072b2'}
MORE_COLOURS = ['#009e73', '#cc79a7', '#882255', '#44aa99', '#ddcc77', '#000000']


def ratios_panel(axes, results, works, metric, title):
    """A row a work; a dot for the median of the ratios to glibc, a line for their spread."""
    allocators = [a for a in results.allocators_of(works) if a != 'glibc']
    more = iter(MORE_COLOURS * 9)
    for i, allocator in enumerate(allocators):
        colour = COLOURS.get(allocator) or next(more)
        shift = (i - (len(allocators) - 1) / 2) * 0.7 / len(allocators)
        label = allocator
        for row, work in enumerate(works):
            ratios = results.ratios(work, allocator, 'glibc', metric)
            if not ratios:
                continue
            axes.plot([min(ratios), max(ratios)], [row + shift] * 2, color=colour, alpha=0.45,
                      linewidth=1.5)
            axes.plot(statistics.median(ratios), row + shift, 'o', color=colour, markersize=4.5,
                      label=label)
            label = None
    axes.axvline(1, color='black', linewidth=0.8)
    axes.set_xscale('log', base=2)
    axes.xaxis.set_major_formatter(lambda value, _: '%g' % round(value, 3))
    axes.set_yticks(range(len(works)), works)
    axes.set_ylim(len(works) - 0.5, -0.5)
    axes.grid(axis='x', color='#dddddd')
    axes.set_axisbelow(True)
    axes.set_title(title, fontsize=10)


def sweep_panel(axes, results, works, metric, title):
    """A line a work over the swept values."""
    values = [a for a in results.allocators_of(works) if results.role[a] == 'sweep']
    for work in works:
        ratios = [results.ratios(work, a, 'glibc', metric) for a in values]
        points = [(n, statistics.median(r)) for n, r in enumerate(ratios) if r]
        # auto is no point of the scale.
        line = [(n, y) for n, y in points if values[n] != 'auto']
        drawn, = axes.plot(*zip(*line), marker='o', markersize=4, label=work.partition('-')[2])
        axes.plot(*zip(*[p for p in points if p not in line] or [(0, float('nan'))]), 'o',
                  markersize=4, color=drawn.get_color())
    axes.set_xticks(range(len(values)), values)
    axes.set_yscale('log', base=2)
    axes.yaxis.set_major_formatter(lambda value, _: '%g' % round(value, 3))
    axes.grid(axis='y', color='#dddddd')
    axes.set_title(title, fontsize=10)
    axes.legend(fontsize=7)


def plot(results, path):
    """Returns False where there is no matplotlib."""
    try:
        import matplotlib
    except ImportError:
        return False
    matplotlib.use('Agg')
    import matplotlib.pyplot as pyplot

    programs = [w for w in results.works if results.group[w] in ('programs', 'heavy', 'article')]
    micro = [w for w in results.works if results.group[w] in ('micro', 'servers')
             and w != 'nginx-idle']
    rows = []
    if programs:
        rows.append((programs, ratios_panel, (
            ('wall', 'programs and allocation-heavy: run time / glibc'),
            ('rss', 'peak RSS / glibc'))))
    if micro:
        rows.append((micro, ratios_panel, (
            ('wall', 'small loops and servers: run time / glibc'), ('rss', 'peak RSS / glibc'))))
    for group, second in (('granularity', ('rss', 'peak RSS / glibc')),
                          ('lives', ('address_space', 'address space / glibc'))):
        works = results.in_group(group)
        if works:
            rows.append((works, sweep_panel, (('wall', group + ': run time / glibc'), second)))
    if not rows:
        return False
    heights = [0.32 * len(works) + 1 if panel is ratios_panel else 3 for works, panel, _ in rows]
    figure, grid = pyplot.subplots(len(rows), 2, figsize=(12, sum(heights) + 0.5), squeeze=False,
                                   gridspec_kw={'height_ratios': heights}, layout='constrained')
    for (works, panel, metrics), pair in zip(rows, grid):
        for (metric, title), axes in zip(metrics, pair):
            panel(axes, results, works, metric, title)
        if panel is ratios_panel:
            pair[0].legend(fontsize=8, ncol=9, loc='lower left', borderpad=0.2, columnspacing=1,
                           handletextpad=0.2, bbox_to_anchor=(0, 1.04 + 0.3 / len(works)))
    figure.savefig(path, dpi=80)
    pyplot.close(figure)
    return True
