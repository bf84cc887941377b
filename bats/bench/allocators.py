# SPDX-License-Identifier: MIT
"""allocators: what is preloaded under the programs that are measured.

An allocator is a library and an environment. Its role says which of the bars are for it: `address`
and `count` are vatalloc's modes, `peer` is anything else. What is not of the system is copied into
the directory of this run first: if it is built anew meanwhile, that does not change what is
measured, and servers that give up root can read it.
"""
import os
import platform
import re
import shutil
import subprocess


class Problem(Exception):
    """Something the caller did, to be said in one line."""


class Allocator:
    def __init__(self, name, library, environment=(), role='peer'):
        self.name = name
        self.library = os.path.realpath(library)
        self.environment = dict(environment)
        self.role = role
        self.stats = stats_offset(library)

    def move_into(self, directory):
        # Those of the system stay where they are: libc must not be there twice.
        if self.library.startswith('/usr/lib/'):
            return
        place = os.path.join(directory, self.name)
        os.makedirs(place)
        self.library = shutil.copy(self.library, place)
        os.chmod(self.library, 0o644)

    def variables(self):
        return {'LD_PRELOAD': self.library, **self.environment}


def stats_offset(library):
    """Where vatalloc's counters are, or None: then it is not vatalloc."""
    symbols = subprocess.run(['nm', '-D', '--defined-only', library], capture_output=True,
                             text=True)
    match = re.search(r'^([0-9a-f]+) \w vatalloc_stats$', symbols.stdout, re.M)
    return int(match[1], 16) if match else None


def system_library(soname):
    """A library by the beginning of its name, as the dynamic linker would find it."""
    listing = subprocess.run(['/sbin/ldconfig', '-p'], capture_output=True, text=True).stdout
    machine = {'x86_64': 'x86-64', 'aarch64': 'AArch64'}.get(platform.machine(), '')
    for line in listing.splitlines():
        if line.strip().startswith(soname) and machine in line:
            return line.split('=> ')[1]
    return None


def vatalloc(prefix, library, options='mode={}'):
    return [Allocator(prefix + mode, library,
                      {'VATALLOC_OPTIONS': options.format(mode) + ':journal=no'}, mode)
            for mode in ('address', 'count')]


def peer(text):
    """NAME=/path/lib.so[,VARIABLE=VALUE...]; a vatalloc without options: in both modes."""
    name, _, rest = text.partition('=')
    library, *pairs = rest.split(',')
    if not re.fullmatch(r'[A-Za-z0-9_.+-]+', name) or not library:
        raise Problem("PEERS: '%s' is not NAME=/path/library.so[,VARIABLE=VALUE...]" % text)
    if not os.path.isfile(library):
        raise Problem("PEERS: %s: there is no file '%s'" % (name, library))
    with open(library, 'rb') as f:
        if f.read(4) != b'\x7fELF':
            raise Problem("PEERS: %s: '%s' is not a library" % (name, library))
    for pair in pairs:
        if '=' not in pair:
            raise Problem("PEERS: %s: '%s' is not VARIABLE=VALUE" % (name, pair))
    environment = dict(pair.split('=', 1) for pair in pairs)
    library = os.path.realpath(library)
    if stats_offset(library) is None:
        return [Allocator(name, library, environment)]
    if 'VATALLOC_OPTIONS' not in environment:
        return vatalloc(name + '-', library)
    mode = re.search(r'\bmode=(\w+)', environment['VATALLOC_OPTIONS'])
    role = {'count': 'count', 'address': 'address', 'auto': 'address'}.get(
        mode[1] if mode else 'auto', 'peer')
    return [Allocator(name, library, environment, role)]


def all_allocators(library, peers, wanted):
    """Debian's, vatalloc in its modes, and peers; glibc and jemalloc always, to compare with."""
    found = []
    # libc in front of itself changes nothing but for programs that are linked with another heap.
    for name, soname in (('glibc', 'libc.so.6'), ('jemalloc', 'libjemalloc.so.2'),
                         ('mimalloc', 'libmimalloc.so.'), ('tcmalloc', 'libtcmalloc_minimal.so.')):
        path = system_library(soname)
        if path:
            found.append(Allocator(name, path))
        elif name in ('glibc', 'jemalloc'):
            raise Problem('no %s here: make bench installs it as root' % soname)
        else:
            print('bench: no %s* here: %s is left out' % (soname, name))
    if not os.path.isfile(library):
        raise Problem("VATALLOC_LIB: there is no file '%s'" % library)
    found += vatalloc('', os.path.realpath(library))
    for text in peers.split():
        found += peer(text)
    names = [a.name for a in found]
    for name in names:
        if names.count(name) > 1:
            raise Problem("PEERS: there is another '%s'" % name)
    for name in wanted:
        if name not in names:
            raise Problem("ALLOCATORS: no '%s'; there are: %s" % (name, ' '.join(names)))
    return [a for a in found if not wanted or a.name in wanted or a.name in ('glibc', 'jemalloc')]
